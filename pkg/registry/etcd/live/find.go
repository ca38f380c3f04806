// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Found is what Kubernetes knows of a cluster, and how its members are reached.
type Found struct {
	// Pods and Claims that belong to exactly this cluster, but not those that were
	// made for a member that is not added yet.
	Pods      []corev1.Pod
	PodsKnown bool
	Claims    []corev1.PersistentVolumeClaim
	// Target holds the endpoints of the members that could answer.
	Target etcd.Target
	// CertificateExpiry is when the client certificate in Target ends; zero without TLS.
	CertificateExpiry time.Time
	// CertificateErr is why the client certificate could not be read; nil without TLS.
	CertificateErr error
	// Problems tells what could not be read.
	Problems []string
}

// Find reads what a cluster is made of. What cannot be read is a problem and no
// error: without the pods, members are looked for under their names.
func (a *Asker) Find(ctx context.Context, cluster *v1beta2.EtcdCluster) (*Found, error) {
	if a.kube == nil {
		return nil, ErrNoKubernetes
	}
	ctx, cancel := context.WithTimeout(ctx, kubernetesShare)
	defer cancel()
	found := &Found{}
	var podsErr, claimsErr, tlsErr error
	var group sync.WaitGroup
	group.Go(func() { podsErr = a.findPods(ctx, cluster, found) })
	group.Go(func() { claimsErr = a.findClaims(ctx, cluster, found) })
	group.Go(func() { tlsErr = a.findCertificates(ctx, cluster, found) })
	group.Wait()
	for _, problem := range []struct {
		what string
		err  error
	}{
		{"the pods could not be read", podsErr},
		{"the volume claims could not be read", claimsErr},
		{ErrNoCertificate.Error(), tlsErr},
	} {
		if problem.err != nil {
			found.Problems = append(found.Problems, problem.what+": "+problem.err.Error())
		}
	}
	if tlsErr != nil {
		found.CertificateErr = fmt.Errorf("%w: %w", ErrNoCertificate, tlsErr)
	}
	found.PodsKnown = podsErr == nil
	if found.PodsKnown {
		found.Target.Endpoints = endpointsOf(cluster, found.Pods)
	} else {
		found.Target.Endpoints = endpointsByName(cluster)
	}
	return found, nil
}

func selection(cluster *v1beta2.EtcdCluster) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.SelectorFromSet(resources.Labels(cluster.Name)).String()}
}

func (a *Asker) findPods(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Found) error {
	list, err := a.kube.CoreV1().Pods(cluster.Namespace).List(ctx, selection(cluster))
	if err != nil {
		return err
	}
	for i := range list.Items {
		if p := &list.Items[i]; resources.Owns(cluster, p) && !resources.IsPrepared(p.Annotations) {
			found.Pods = append(found.Pods, list.Items[i])
		}
	}
	return nil
}

func (a *Asker) findClaims(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Found) error {
	list, err := a.kube.CoreV1().PersistentVolumeClaims(cluster.Namespace).List(ctx, selection(cluster))
	if err != nil {
		return err
	}
	for i := range list.Items {
		if c := &list.Items[i]; resources.Owns(cluster, c) && !resources.IsPrepared(c.Annotations) {
			found.Claims = append(found.Claims, list.Items[i])
		}
	}
	return nil
}

// findCertificates reads the secret of a cluster with TLS.
func (a *Asker) findCertificates(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Found) error {
	if !resources.SecureClient(cluster) {
		return nil
	}
	name := resources.Secrets(cluster).Operator
	if name == "" {
		return errors.New("spec.TLS.static.operatorSecret is not set")
	}
	secret, err := a.kube.CoreV1().Secrets(cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return secretError(cluster.Namespace, name, err)
	}
	pair, err := certificates.Read(resources.UseOperator, secret)
	if err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	found.Target.TLS, found.Target.TLSIdentity = pair.ClientConfig()
	found.CertificateExpiry = pair.Leaf.NotAfter
	return nil
}

// endpointsOf returns where the members in these pods listen for clients. A pod whose
// container does not run is asked, too: Kubernetes may not know it yet.
func endpointsOf(cluster *v1beta2.EtcdCluster, pods []corev1.Pod) []etcd.Endpoint {
	var list []etcd.Endpoint
	for i := range pods {
		p := &pods[i]
		if p.Status.PodIP == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		list = append(list, etcd.Endpoint{
			Name:    p.Name,
			URL:     resources.ClientURL(cluster, p.Name),
			Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(resources.ClientPort)),
		})
	}
	return sorted(list)
}

// endpointsByName is for when the pods cannot be read: the members of the last
// status, under the names that the cluster's DNS gives them.
func endpointsByName(cluster *v1beta2.EtcdCluster) []etcd.Endpoint {
	var list []etcd.Endpoint
	for i := range cluster.Status.MemberStatuses {
		name := cluster.Status.MemberStatuses[i].Name
		list = append(list, etcd.Endpoint{Name: name, URL: resources.ClientURL(cluster, name)})
	}
	return sorted(list)
}

func sorted(list []etcd.Endpoint) []etcd.Endpoint {
	slices.SortFunc(list, func(a, b etcd.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Endpoint returns where the member called name listens.
func (f *Found) Endpoint(name string) (etcd.Endpoint, bool) {
	for _, e := range f.Target.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return etcd.Endpoint{}, false
}
