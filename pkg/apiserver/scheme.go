// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
)

// NewScheme returns a scheme with every type that the server reads or returns.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		return nil, fmt.Errorf("register the API group: %w", err)
	}

	// The endpoint of the scale subresource also looks up its type by the internal version.
	if err := autoscalingv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register autoscaling/v1: %w", err)
	}
	internal := schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &autoscalingv1.Scale{})

	// Types that every API server returns.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}
