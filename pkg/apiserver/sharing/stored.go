// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"io"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Cluster is an EtcdCluster in the watch cache. A list of the watch cache copies its items, so an item
// is only pointers, and its content is shared by the watch cache and all lists. Nothing may
// change the content. Cluster implements runtime.CacheableObject, which is how an encoder of the
// generic server learns that an object contains the one to encode.
type Cluster struct {
	// Object is the metadata of the content. An embedded ObjectMeta would add its encoders, which
	// know nothing of the content.
	metav1.Object
	content *content
}

var (
	_ runtime.CacheableObject = &Cluster{}
	_ metav1.Object           = &Cluster{}
)

// content is an EtcdCluster whose conditions take less memory.
type content struct {
	// cluster has no conditions, if conditions has them.
	cluster    v1beta2.EtcdCluster
	conditions []condition
	// times are the different times of the conditions.
	times []string
}

// condition is a condition of a cluster. Equal conditions of all clusters have one kind; only
// the times differ.
type condition struct {
	kind                  *v1beta2.ClusterCondition
	updated, transitioned uint8
}

// maxConditions is how many conditions can have different times that an index of 8 bits
// distinguishes. The conditions of a cluster that has more are kept as they are.
const maxConditions = math.MaxUint8 / 2

// unshared returns a Cluster that shares no parts with others: one that is sent and forgotten.
func unshared(from *v1beta2.EtcdCluster) Cluster {
	made := &content{cluster: *from}
	return Cluster{Object: &made.cluster.ObjectMeta, content: made}
}

// newCluster returns a Cluster with the content of an EtcdCluster, whose parts it shares. The caller
// must not use the EtcdCluster afterwards.
func (c *Clusters) newCluster(from *v1beta2.EtcdCluster) Cluster {
	c.share(from)
	made := &content{cluster: *from}
	made.cluster.Status.Conditions = exactly(from.Status.Conditions)
	if n := len(from.Status.Conditions); n > 0 && n <= maxConditions {
		made.cluster.Status.Conditions = nil
		made.conditions = make([]condition, n)
		for i := range from.Status.Conditions {
			made.conditions[i] = c.newCondition(&from.Status.Conditions[i], &made.times)
		}
		made.times = exactly(made.times)
	}
	return Cluster{Object: &made.cluster.ObjectMeta, content: made}
}

func (c *Clusters) newCondition(from *v1beta2.ClusterCondition, times *[]string) condition {
	kind := *from
	kind.LastUpdateTime, kind.LastTransitionTime = "", ""
	return condition{
		kind:         c.sharedKind(kind),
		updated:      indexIn(times, from.LastUpdateTime),
		transitioned: indexIn(times, from.LastTransitionTime),
	}
}

// indexIn returns the index of a time. It adds a time that is new.
func indexIn(times *[]string, at string) uint8 {
	for i, known := range *times {
		if known == at {
			return uint8(i) // #nosec G115 -- maxConditions bounds the number of times
		}
	}
	*times = append(*times, at)
	return uint8(len(*times) - 1) // #nosec G115 -- maxConditions bounds the number of times
}

// Expand returns the EtcdCluster as the API has it. It shares its content with the watch cache: the
// caller must not change more than the fields themselves.
func (c *Cluster) Expand() runtime.Object {
	expanded := &v1beta2.EtcdCluster{}
	c.expandInto(expanded)
	return expanded
}

// ExpandInto is Expand without allocations: it overwrites an earlier result of Expand.
func (c *Cluster) ExpandInto(into runtime.Object) {
	if cluster, ok := into.(*v1beta2.EtcdCluster); ok {
		c.expandInto(cluster)
	}
}

func (c *Cluster) expandInto(into *v1beta2.EtcdCluster) {
	// The slice is that of an earlier call, and never one of the watch cache.
	conditions := into.Status.Conditions[:0]
	*into = c.content.cluster
	number := max(len(c.content.conditions), len(c.content.cluster.Status.Conditions))
	if number == 0 {
		return
	}
	conditions = append(slices.Grow(conditions, number), c.content.cluster.Status.Conditions...)
	for _, from := range c.content.conditions {
		full := *from.kind
		full.LastUpdateTime, full.LastTransitionTime = c.content.times[from.updated], c.content.times[from.transitioned]
		conditions = append(conditions, full)
	}
	into.Status.Conditions = conditions
}

// GetObjectKind implements runtime.Object. It returns a copy, because encoders set the kind of an object while
// they encode it. Decoders of etcd leave the kind empty.
func (c *Cluster) GetObjectKind() schema.ObjectKind {
	kind := c.content.cluster.TypeMeta
	if kind == (metav1.TypeMeta{}) {
		return schema.EmptyObjectKind
	}
	return &kind
}

// DeepCopyObject implements runtime.Object. The copy is an EtcdCluster: whatever leaves the watch
// cache to be changed or to be sent to watches is copied first.
func (c *Cluster) DeepCopyObject() runtime.Object { return c.Expand().DeepCopyObject() }

// GetObject implements runtime.CacheableObject.
func (c *Cluster) GetObject() runtime.Object { return c.DeepCopyObject() }

// CacheEncode implements runtime.CacheableObject.
func (c *Cluster) CacheEncode(_ runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	return encode(c.Expand(), w)
}

// ClusterList is a list of the watch cache. It has no kind of its own.
type ClusterList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Cluster
}

// DeepCopyObject implements runtime.Object. The copy is an EtcdClusterList.
func (l *ClusterList) DeepCopyObject() runtime.Object { return l.Expand().DeepCopyObject() }

// ExpandEmpty returns the list as the API has it, without its items.
func (l *ClusterList) ExpandEmpty() runtime.Object {
	return &v1beta2.EtcdClusterList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: []v1beta2.EtcdCluster{}}
}

// Expand returns the list as the API has it. It shares its content with the watch cache.
func (l *ClusterList) Expand() runtime.Object {
	list := &v1beta2.EtcdClusterList{}
	l.expandInto(list)
	return list
}

func (l *ClusterList) expandInto(list *v1beta2.EtcdClusterList) {
	list.TypeMeta, list.ListMeta = l.TypeMeta, l.ListMeta
	list.Items = make([]v1beta2.EtcdCluster, len(l.Items))
	for i := range l.Items {
		l.Items[i].expandInto(&list.Items[i])
	}
}
