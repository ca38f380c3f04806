// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

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

// Discovery is what Kubernetes knows about a cluster, and how to reach its members.
type Discovery struct {
	// Pods and PVCs that belong to exactly this cluster, without those that were made
	// for a member that is not added yet.
	Pods      []corev1.Pod
	PodsKnown bool
	PVCs      []corev1.PersistentVolumeClaim
	// Target holds the endpoints of the members that may respond.
	Target etcd.Target
	// CertificateExpiry is when the client certificate in Target ends; zero without TLS.
	CertificateExpiry time.Time
	// CertificateErr is why the client certificate could not be read; nil without TLS.
	CertificateErr error
	// Problems says what could not be read.
	Problems []string
}

// Discover reads the objects of a cluster. An object that cannot be read is a problem
// in the result and no error: without the pods, members are addressed by name.
func (p *Prober) Discover(ctx context.Context, cluster *v1beta2.EtcdCluster) (*Discovery, error) {
	if p.kube == nil {
		return nil, ErrNoKubernetes
	}
	ctx, cancel := context.WithTimeout(ctx, kubernetesShare)
	defer cancel()
	found := &Discovery{}
	var podsErr, pvcsErr, tlsErr error
	var group sync.WaitGroup
	group.Go(func() { podsErr = p.findPods(ctx, cluster, found) })
	group.Go(func() { pvcsErr = p.findPVCs(ctx, cluster, found) })
	group.Go(func() { tlsErr = p.findCertificates(ctx, cluster, found) })
	group.Wait()
	for _, problem := range []struct {
		what string
		err  error
	}{
		{"the pods could not be read", podsErr},
		{"the PVCs could not be read", pvcsErr},
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

// maxObjects is how many pods, and how many PVCs, are read for one probe. A tenant chooses labels, and so how many
// objects a list returns. No cluster has as many.
const maxObjects = 256

func selection(cluster *v1beta2.EtcdCluster) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.SelectorFromSet(resources.Labels(cluster.Name)).String(), Limit: maxObjects}
}

// tooMany returns an error if a list is not complete. What it lacks may be members.
func tooMany(list metav1.ListInterface, what string, cluster *v1beta2.EtcdCluster) error {
	if list.GetContinue() == "" {
		return nil
	}
	return fmt.Errorf("more than %d %s have the labels of this cluster; delete those that are not its own: kubectl get %s -n %s -l %s",
		maxObjects, what, what, cluster.Namespace, selection(cluster).LabelSelector)
}

func (p *Prober) findPods(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Discovery) error {
	list, err := p.kube.CoreV1().Pods(cluster.Namespace).List(ctx, selection(cluster))
	if err != nil {
		return err
	}
	if err := tooMany(list, "pods", cluster); err != nil {
		return err
	}
	for i := range list.Items {
		if pod := &list.Items[i]; resources.Owns(cluster, pod) && !resources.IsPrepared(pod.Annotations) {
			found.Pods = append(found.Pods, list.Items[i])
		}
	}
	return nil
}

func (p *Prober) findPVCs(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Discovery) error {
	list, err := p.kube.CoreV1().PersistentVolumeClaims(cluster.Namespace).List(ctx, selection(cluster))
	if err != nil {
		return err
	}
	if err := tooMany(list, "pvc", cluster); err != nil {
		return err
	}
	for i := range list.Items {
		if c := &list.Items[i]; resources.Owns(cluster, c) && !resources.IsPrepared(c.Annotations) {
			found.PVCs = append(found.PVCs, list.Items[i])
		}
	}
	return nil
}

// findCertificates reads the Secret of a cluster with TLS.
func (p *Prober) findCertificates(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Discovery) error {
	if !resources.HasClientTLS(cluster) {
		return nil
	}
	name := resources.Secrets(cluster).Operator
	if name == "" {
		return errors.New("spec.TLS.static.operatorSecret is not set")
	}
	secret, err := p.kube.CoreV1().Secrets(cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
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
// container does not run is probed too: the kubelet may not have reported it yet.
func endpointsOf(cluster *v1beta2.EtcdCluster, pods []corev1.Pod) []etcd.Endpoint {
	var list []etcd.Endpoint
	for i := range pods {
		p := &pods[i]
		if p.Status.PodIP == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		list = append(list, etcd.Endpoint{
			Name:     p.Name,
			URL:      resources.ClientURL(cluster, p.Name),
			Address:  net.JoinHostPort(p.Status.PodIP, strconv.Itoa(resources.ClientPort)),
			MemberID: resources.ReportedMemberID(cluster, p.Name),
		})
	}
	return sorted(list)
}

// endpointsByName serves when the pods cannot be read: it returns the members of the
// last status, under the names that the cluster's DNS gives them.
func endpointsByName(cluster *v1beta2.EtcdCluster) []etcd.Endpoint {
	var list []etcd.Endpoint
	for i := range cluster.Status.MemberStatuses {
		name := cluster.Status.MemberStatuses[i].Name
		if cluster.Status.MemberStatuses[i].Unmanaged {
			continue // no DNS name of this cluster leads to it
		}
		list = append(list, etcd.Endpoint{Name: name, URL: resources.ClientURL(cluster, name), MemberID: resources.ReportedMemberID(cluster, name)})
	}
	return sorted(list)
}

func sorted(list []etcd.Endpoint) []etcd.Endpoint {
	slices.SortFunc(list, func(a, b etcd.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Endpoint returns where the member called name listens.
func (f *Discovery) Endpoint(name string) (etcd.Endpoint, bool) {
	for _, e := range f.Target.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return etcd.Endpoint{}, false
}
