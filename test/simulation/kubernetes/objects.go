// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Kind is a kind of Kubernetes object.
type Kind int

// Values of Kind.
const (
	KindCluster Kind = iota
	KindService
	KindRecord
	KindPod
	KindPVC
	KindBudget
	KindSecret
	Kinds
)

// KindNames are the resources of the kinds.
var KindNames = [Kinds]string{"etcdclusters", "services", "configmaps", "pods", "persistentvolumeclaims", "poddisruptionbudgets", "secrets"}

// Resource is what errors name.
func (k Kind) Resource() schema.GroupResource { return schema.GroupResource{Resource: KindNames[k]} }

// KindOf returns the kind of an object.
func KindOf(object metav1.Object) Kind {
	switch object.(type) {
	case *v1beta2.EtcdCluster:
		return KindCluster
	case *corev1.Service:
		return KindService
	case *corev1.ConfigMap:
		return KindRecord
	case *corev1.Pod:
		return KindPod
	case *corev1.PersistentVolumeClaim:
		return KindPVC
	case *policyv1.PodDisruptionBudget:
		return KindBudget
	case *corev1.Secret:
		return KindSecret
	default:
		return Kinds
	}
}

func copyOf[T metav1.Object](object T) T {
	return any(object).(runtime.Object).DeepCopyObject().(T)
}

// table holds the objects of one kind by name; names are in order.
type table struct {
	names  []string
	byName map[string]metav1.Object
}

func (t *table) Get(name string) metav1.Object { return t.byName[name] }

func (t *table) Put(object metav1.Object) {
	name := object.GetName()
	if t.byName == nil {
		t.byName = map[string]metav1.Object{}
	}
	if _, found := t.byName[name]; !found {
		i, _ := slices.BinarySearch(t.names, name)
		t.names = slices.Insert(t.names, i, name)
	}
	t.byName[name] = object
}

func (t *table) drop(name string) {
	if i, found := slices.BinarySearch(t.names, name); found {
		t.names = slices.Delete(t.names, i, i+1)
		delete(t.byName, name)
	}
}
