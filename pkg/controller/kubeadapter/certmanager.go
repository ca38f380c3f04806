// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// How long the result of a look for the API of cert-manager is valid.
const (
	presentTTL = 10 * time.Minute
	AbsentTTL  = 30 * time.Second
)

// CertManager implements cluster.CertManager in a Kubernetes that may get cert-manager, or
// lose it, at any time.
type CertManager struct {
	Discovery discovery.ServerResourcesInterface
	Dynamic   dynamic.Interface
	Clock     clock.PassiveClock

	mu      sync.Mutex
	asked   time.Time
	present bool
}

// Served implements cluster.CertManager.
func (a *CertManager) Served() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	life := AbsentTTL
	if a.present {
		life = presentTTL
	}
	if !a.asked.IsZero() && a.Clock.Since(a.asked) < life {
		return a.present, nil
	}
	list, err := a.Discovery.ServerResourcesForGroupVersion(resources.CertManagerVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for the API %s: %w", resources.CertManagerVersion, err)
	}
	a.present = err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == resources.CertManagerResource.Resource
	})
	a.asked = a.Clock.Now()
	return a.present, nil
}

// recheck makes the next call of Served ask the API.
func (a *CertManager) recheck() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Time{}
}

func (a *CertManager) in(namespace string) dynamic.ResourceInterface {
	return a.Dynamic.Resource(resources.CertManagerResource).Namespace(namespace)
}

// Get implements cluster.CertManager.
func (a *CertManager) Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return a.in(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Create implements cluster.CertManager.
func (a *CertManager) Create(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created, err := a.in(certificate.GetNamespace()).Create(ctx, certificate, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		a.recheck() // the API itself does not exist, or the namespace
	}
	return created, err
}

// Update implements cluster.CertManager.
func (a *CertManager) Update(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return a.in(certificate.GetNamespace()).Update(ctx, certificate, metav1.UpdateOptions{})
}
