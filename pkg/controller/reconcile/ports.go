// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Gate knows which of the controller's own writes the cache has not shown yet.
type Gate interface {
	// IsReady is true if the cache shows every write that was noted for the key.
	IsReady(key types.NamespacedName) bool
	// Note remembers that an object was written for the key.
	Note(key types.NamespacedName, written metav1.Object)
	// Compare drops the write of an object that was noted for the key, if the live object is older: its API
	// was restored from a backup, and lost the write.
	Compare(key types.NamespacedName, live metav1.Object)
	// Forget drops what was noted for the key.
	Forget(key types.NamespacedName)
}

// Recorder records events about an object.
type Recorder interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}
