// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install adds every served version of the group to a scheme. It adds the
// types of the served version once more as the in-memory version: there is one set of
// Go types and no conversion. It is the only place that knows all versions.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Install registers the group with scheme.
func Install(scheme *runtime.Scheme) error {
	if err := v1beta2.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: etcd.GroupName, Version: runtime.APIVersionInternal}, v1beta2.Types()...)
	return scheme.SetVersionPriority(v1beta2.SchemeGroupVersion)
}
