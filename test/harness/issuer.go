// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// CertificateDefinition defines the API of cert-manager, as far as it is needed.
const CertificateDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Certificate, listKind: CertificateList, plural: certificates, singular: certificate}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

var certificateResource = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}

// issuedFor on a secret is the generation of the Certificate that it was made for.
const issuedFor = "issued-for-generation"

// Issuer plays cert-manager in one namespace: it meets every Certificate.
type Issuer struct {
	env       *Environment
	ca        *CA
	namespace string
	client    dynamic.ResourceInterface
	stop      context.CancelFunc
	done      sync.WaitGroup
	failed    error
}

// Issuer starts one; Stop ends it.
func (e *Environment) Issuer(ctx context.Context, namespace string, ca *CA) (*Issuer, error) {
	client, err := dynamic.NewForConfig(e.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	i := &Issuer{env: e, ca: ca, namespace: namespace, client: client.Resource(certificateResource).Namespace(namespace)}
	ctx, i.stop = context.WithCancel(ctx)
	watch, err := i.client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		i.stop()
		return nil, fmt.Errorf("watch certificates: %w", err)
	}
	i.done.Go(func() {
		defer watch.Stop()
		for event := range watch.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || u.GetKind() != "Certificate" || u.GetDeletionTimestamp() != nil {
				continue
			}
			if err := i.meet(ctx, u); err != nil && ctx.Err() == nil {
				i.failed = err
				return
			}
		}
	})
	return i, nil
}

// Stop ends it and returns what went wrong, if anything did.
func (i *Issuer) Stop() error {
	i.stop()
	i.done.Wait()
	return i.failed
}

// Get returns a Certificate.
func (i *Issuer) Get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return i.client.Get(ctx, name, metav1.GetOptions{})
}

// Edit changes a field of the spec of a Certificate, as a user does.
func (i *Issuer) Edit(ctx context.Context, name, key, value string) error {
	u, err := i.Get(ctx, name)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, value, "spec", key); err != nil {
		return err
	}
	_, err = i.client.Update(ctx, u, metav1.UpdateOptions{})
	return err
}

// Renew reissues a certificate.
func (i *Issuer) Renew(ctx context.Context, name string) error {
	u, err := i.Get(ctx, name)
	if err != nil {
		return err
	}
	return i.issue(ctx, u)
}

// meet issues what a Certificate asks for, unless that was done before.
func (i *Issuer) meet(ctx context.Context, u *unstructured.Unstructured) error {
	secret, err := i.env.Kube.CoreV1().Secrets(i.namespace).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err == nil && secret.Annotations[issuedFor] == strconv.FormatInt(u.GetGeneration(), 10) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return i.issue(ctx, u)
}

func (i *Issuer) issue(ctx context.Context, u *unstructured.Unstructured) error {
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return err
	}
	request := Request{}
	request.Name, _, _ = unstructured.NestedString(spec, "commonName")
	for _, key := range []string{"dnsNames", "ipAddresses"} {
		hosts, _, err := unstructured.NestedStringSlice(spec, key)
		if err != nil {
			return err
		}
		request.Hosts = append(request.Hosts, hosts...)
	}
	certificate, key, err := i.ca.Issue(request)
	if err != nil {
		return err
	}
	name, _, err := unstructured.NestedString(spec, "secretName")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{issuedFor: strconv.FormatInt(u.GetGeneration(), 10), "cert-manager.io/certificate-name": name}},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, corev1.ServiceAccountRootCAKey: i.ca.PEM},
	}
	secrets := i.env.Kube.CoreV1().Secrets(i.namespace)
	_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return err
}
