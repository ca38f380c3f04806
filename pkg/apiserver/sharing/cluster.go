// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// stringLimit is for namespaces, nodes, versions, reasons and messages.
	stringLimit = 16_384
	// longestString is the longest string that is shared, in bytes. Longer messages name members.
	longestString = 256
	// partLimit is for pod policies and managed fields.
	partLimit = 1024
	// longestPart is the longest encoding of a part that is shared, in bytes. Tables keep parts that no
	// cluster has any more, so without a bound the versions of one large object would fill the memory.
	longestPart = 8192
)

// Clusters shares equal parts between EtcdClusters.
type Clusters struct {
	strings *table[string, string]
	pods    *table[string, *v1beta2.PodPolicy]
	fields  *table[string, *metav1.FieldsV1]
}

// NewClusters returns a Clusters that knows no parts.
func NewClusters() *Clusters {
	return &Clusters{
		strings: newTable[string, string](stringLimit),
		pods:    newTable[string, *v1beta2.PodPolicy](partLimit),
		fields:  newTable[string, *metav1.FieldsV1](partLimit),
	}
}

// share replaces parts of a cluster by equal parts of clusters that it has seen. The caller must
// not change the content of the cluster afterwards, because other clusters contain it, too.
func (c *Clusters) share(cluster *v1beta2.EtcdCluster) {
	own := ownStrings{cluster.Name}
	c.shareMetadata(&cluster.ObjectMeta, own)
	c.shareSpec(&cluster.Spec)
	c.shareStatus(&cluster.Status, own)
	// A quantity remembers its text when an encoder first asks for the text. Requests encode the objects
	// of the watch cache at the same time, and none may write to them.
	_ = cluster.Size()
}

func (c *Clusters) shareMetadata(meta *metav1.ObjectMeta, own ownStrings) {
	c.shareStrings(&meta.Namespace)
	for i := range meta.Finalizers {
		c.shareStrings(&meta.Finalizers[i])
	}
	meta.Labels = c.sharedMap(meta.Labels, own)
	meta.ManagedFields = exactly(meta.ManagedFields)
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		c.shareStrings(&entry.Manager, (*string)(&entry.Operation), &entry.APIVersion, &entry.FieldsType, &entry.Subresource)
		entry.FieldsV1 = c.sharedFields(entry.FieldsV1)
	}
}

func (c *Clusters) shareSpec(spec *v1beta2.ClusterSpec) {
	c.shareStrings(&spec.Repository, &spec.Version, (*string)(&spec.PodDisruptionBudget), &spec.ImageDigest)
	spec.Pod = c.sharedPod(spec.Pod)
}

func (c *Clusters) shareStatus(status *v1beta2.ClusterStatus, own ownStrings) {
	c.shareStrings((*string)(&status.Phase), &status.CurrentVersion, &status.TargetVersion)
	status.MemberStatuses = exactly(status.MemberStatuses)
	for i := range status.MemberStatuses {
		member := &status.MemberStatuses[i]
		own.share(&member.Name)
		own = append(own, member.Name)
		own.share(&member.Pod, &member.Claim)
		c.shareStrings(&member.Node, &member.Version, (*string)(&member.Role), (*string)(&member.Healthy), &member.Reason)
	}
	status.Conditions = exactly(status.Conditions)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		c.shareStrings((*string)(&condition.Type), (*string)(&condition.Status), &condition.Reason, &condition.Message)
		for _, at := range []*string{&condition.LastUpdateTime, &condition.LastTransitionTime} {
			if !own.share(at) {
				own = append(own, *at)
			}
		}
	}
	own.share(&status.Leader)
	for _, names := range []*[]string{&status.Members.Ready, &status.Members.Unready} {
		*names = exactly(*names)
		for i := range *names {
			own.share(&(*names)[i])
		}
	}
}

// shareStrings replaces strings by equal ones.
func (c *Clusters) shareStrings(texts ...*string) {
	for _, text := range texts {
		if *text == "" || len(*text) > longestString {
			continue
		}
		*text = c.strings.get(*text, *text)
	}
}

// sharedMap returns an equal map with shared strings.
func (c *Clusters) sharedMap(from map[string]string, own ownStrings) map[string]string {
	if from == nil {
		return nil
	}
	to := make(map[string]string, len(from))
	for key, value := range from {
		c.shareStrings(&key)
		if !own.share(&value) {
			c.shareStrings(&value)
		}
		to[key] = value
	}
	return to
}

// sharedPod returns an equal pod policy. Policies are equal if their encodings are.
func (c *Clusters) sharedPod(pod *v1beta2.PodPolicy) *v1beta2.PodPolicy {
	if pod == nil {
		return nil
	}
	if pod.Size() > longestPart {
		return pod
	}
	encoded, err := pod.Marshal()
	if err != nil {
		return pod
	}
	return c.pods.get(string(encoded), pod)
}

// sharedFields returns equal managed fields.
func (c *Clusters) sharedFields(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil || len(fields.GetRawBytes()) > longestPart {
		return fields
	}
	return c.fields.get(fields.GetRawString(), fields)
}

// ownStrings are strings of one cluster that it contains several times, such as names of members.
type ownStrings []string

// share replaces strings by equal ones of the cluster. It returns false if there is none for the
// last string.
func (o ownStrings) share(texts ...*string) bool {
	shared := false
	for _, text := range texts {
		shared = false
		for _, own := range o {
			if own == *text {
				*text, shared = own, true
				break
			}
		}
	}
	return shared
}

// exactly returns a slice without capacity for more: a decoder doubles the capacity when it
// appends.
func exactly[T any](from []T) []T {
	if len(from) == cap(from) {
		return from
	}
	return append(make([]T, 0, len(from)), from...)
}
