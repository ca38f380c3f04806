// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Labels of a lease that say which clusters its holder looks after.
const (
	// labelScope says which kind of clusters: all, those of a namespace, or those marked as clusterwide.
	labelScope = "etcd.database.coreos.com/controller-scope"
	// labelScopeNamespace is the namespace of the clusters, if the scope is one namespace.
	labelScopeNamespace = "etcd.database.coreos.com/controller-scope-namespace"
)

// Values of labelScope.
const (
	scopeAll         = "all"
	scopeNamespace   = "namespace"
	scopeClusterWide = "clusterwide"
)

// leaseOfAll is the lease of a controller that looks after every cluster.
const leaseOfAll = "etcd-operator"

// scope is which clusters a controller looks after. It is comparable.
type scope struct{ kind, namespace string }

func (o *Options) scope() scope {
	switch {
	case o.Namespace != "":
		return scope{scopeNamespace, o.Namespace}
	case o.ClusterWide:
		return scope{kind: scopeClusterWide}
	default:
		return scope{kind: scopeAll}
	}
}

// includes says whether a controller with this scope looks after an object.
func (s scope) includes(object metav1.Object) bool {
	marked := object.GetAnnotations()[ScopeAnnotation] == ScopeClusterWide
	switch s.kind {
	case scopeNamespace:
		return object.GetNamespace() == s.namespace && !marked
	case scopeClusterWide:
		return marked
	default:
		return true
	}
}

// mark gives an object the annotation with which a controller of this scope looks after it. One that looks after all
// objects leaves it as it is.
func (s scope) mark(object metav1.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	switch s.kind {
	case scopeNamespace:
		delete(annotations, ScopeAnnotation)
	case scopeClusterWide:
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[ScopeAnnotation] = ScopeClusterWide
	default:
		return
	}
	object.SetAnnotations(annotations)
}

// takenNamespaces are those whose clusters other controllers look after. Its methods may be called at the same time.
type takenNamespaces struct {
	namespaces atomic.Pointer[sets.Set[string]]
}

// set returns whether the namespaces were others before.
func (t *takenNamespaces) set(namespaces sets.Set[string]) (changed bool) {
	before := t.namespaces.Swap(&namespaces)
	return before == nil && len(namespaces) > 0 || before != nil && !namespaces.Equal(*before)
}

// include says whether another controller looks after an object.
func (t *takenNamespaces) include(object metav1.Object) bool {
	namespaces := t.namespaces.Load()
	return namespaces != nil && namespaces.Has(object.GetNamespace()) && scope{scopeNamespace, object.GetNamespace()}.includes(object)
}

// overlaps is true if there can be a cluster that both scopes include. The annotation
// tells the clusters of a namespace from those of a clusterwide controller.
func (s scope) overlaps(other scope) bool {
	return s.kind == scopeAll || other.kind == scopeAll || s == other
}

// leaseName is the lease of this scope, so that each shard has one of its own.
func (s scope) leaseName() string {
	switch s.kind {
	case scopeNamespace:
		return leaseOfAll + "-" + s.kind + "-" + s.namespace
	case scopeClusterWide:
		return leaseOfAll + "-" + s.kind
	default:
		return leaseOfAll
	}
}

func (s scope) labels() map[string]string {
	return map[string]string{labelScope: s.kind, labelScopeNamespace: s.namespace}
}

func scopeOf(lease metav1.Object) scope {
	return scope{lease.GetLabels()[labelScope], lease.GetLabels()[labelScopeNamespace]}
}

// String returns the scope for a reader.
func (s scope) String() string {
	switch s.kind {
	case scopeNamespace:
		return fmt.Sprintf("the clusters of namespace %s (--namespace)", s.namespace)
	case scopeClusterWide:
		return "the clusters that are marked as clusterwide (--cluster-wide)"
	default:
		return "all clusters"
	}
}
