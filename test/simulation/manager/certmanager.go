// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// noCertManager is the CertManager of a Kubernetes without one: simulated clusters have
// certificates of their own, or none.
type noCertManager struct{}

// Served implements cluster.CertManager.
func (noCertManager) Served() (bool, error) { return false, nil }

// Get implements cluster.CertManager.
func (noCertManager) Get(_ context.Context, _, name string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(resources.CertManagerResource.GroupResource(), name)
}

// Create implements cluster.CertManager.
func (noCertManager) Create(_ context.Context, c *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(resources.CertManagerResource.GroupResource(), c.GetName())
}

// Update implements cluster.CertManager.
func (noCertManager) Update(_ context.Context, c *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(resources.CertManagerResource.GroupResource(), c.GetName())
}
