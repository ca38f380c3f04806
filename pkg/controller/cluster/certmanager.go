// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

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

// How long it is believed that the API of cert-manager is there, or is not.
const (
	presenceLife = 10 * time.Minute
	absenceLife  = 30 * time.Second
)

// CertManagerAPI is the CertManager of a Kubernetes that may have cert-manager or not,
// and may get it, or lose it, at any time.
type CertManagerAPI struct {
	Discovery discovery.ServerResourcesInterface
	Dynamic   dynamic.Interface
	Clock     clock.PassiveClock

	mu      sync.Mutex
	asked   time.Time
	present bool
}

// Served implements CertManager.
func (a *CertManagerAPI) Served() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	life := absenceLife
	if a.present {
		life = presenceLife
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

// doubt makes the next question go to the API.
func (a *CertManagerAPI) doubt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Time{}
}

func (a *CertManagerAPI) in(namespace string) dynamic.ResourceInterface {
	return a.Dynamic.Resource(resources.CertManagerResource).Namespace(namespace)
}

// Get implements CertManager.
func (a *CertManagerAPI) Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return a.in(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Create implements CertManager.
func (a *CertManagerAPI) Create(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created, err := a.in(certificate.GetNamespace()).Create(ctx, certificate, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		a.doubt() // the API itself is gone, or the namespace
	}
	return created, err
}

// Update implements CertManager.
func (a *CertManagerAPI) Update(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return a.in(certificate.GetNamespace()).Update(ctx, certificate, metav1.UpdateOptions{})
}
