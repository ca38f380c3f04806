// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// joinSize is the number of members of a new cluster if nothing says it.
const joinSize = 3

// Join is a migration by joining: the members of a new cluster join a running etcd.
type Join struct {
	Namespace string
	// Name of the new EtcdCluster.
	Name string
	// Endpoints are client URLs of the running etcd, which the controller reaches.
	Endpoints []string
	// TLSSecret holds the client certificate for the endpoints; empty for http.
	TLSSecret string
	// Size and Version replace those of the manifest, if they are set.
	Size    int32
	Version string
	// Manifest is what the new cluster gets in addition: its spec, labels and annotations.
	Manifest *v1beta2.EtcdCluster
}

// Cluster returns the new EtcdCluster.
func (j *Join) Cluster() *v1beta2.EtcdCluster {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name, Labels: j.Manifest.Labels, Annotations: j.Manifest.Annotations},
		Spec:       *j.Manifest.Spec.DeepCopy(),
	}
	size := int32(joinSize)
	if c.Spec.Replicas != nil {
		size = *c.Spec.Replicas
	}
	size = cmp.Or(j.Size, size)
	c.Spec.Replicas, c.Spec.Version = &size, cmp.Or(j.Version, c.Spec.Version)
	c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{
		ClientEndpoints: slices.Clone(j.Endpoints), TLSSecret: j.TLSSecret, OldMembers: v1beta2.OldMembersKeep,
	}}
	return c
}

// Continues checks that a cluster that exists is the one of this migration.
func (j *Join) Continues(c *v1beta2.EtcdCluster) error {
	existing := c.Existing()
	switch {
	case existing == nil:
		return fmt.Errorf("%w: EtcdCluster %s/%s has begun with data of its own. Choose another name", ErrOtherSource, c.Namespace, c.Name)
	case !slices.Equal(existing.ClientEndpoints, j.Endpoints):
		return fmt.Errorf("%w: EtcdCluster %s/%s joins %s. Continue that migration with its endpoints, or choose another name",
			ErrOtherSource, c.Namespace, c.Name, strings.Join(existing.ClientEndpoints, ","))
	default:
		return nil
	}
}

// Describe is the plan. Version is the one that the API server stores.
func (j *Join) Describe(version string, exists bool) []string {
	continues := ""
	if exists {
		continues = " It exists: the migration continues."
	}
	return []string{
		fmt.Sprintf("Migration by joining of %s to EtcdCluster %s/%s.", strings.Join(j.Endpoints, ","), j.Namespace, j.Name),
		fmt.Sprintf("  1. EtcdCluster %s is created: members %d, etcd %s.%s", j.Name, *j.Cluster().Spec.Replicas, version, continues),
		"  2. The controller checks the running etcd: its version, its members, and that all of them serve.",
		"  3. The members join it one by one, each as a learner first. From then on they are part of its quorum.",
		"  The old members stay, and etcd serves all the time. kubectl etcd migrate finish removes them later.",
		"  Before, take a backup of the running etcd. Let no other program change its members meanwhile.",
	}
}

// Delete is the command that deletes the new cluster, while none of its members has joined.
func (j *Join) Delete() string {
	return fmt.Sprintf("kubectl -n %s delete etcdcluster/%s", j.Namespace, j.Name)
}

// OldMembers returns the names of the old members that the status of a cluster lists.
func OldMembers(c *v1beta2.EtcdCluster) []string {
	var names []string
	for i := range c.Status.MemberStatuses {
		if m := &c.Status.MemberStatuses[i]; m.Unmanaged {
			names = append(names, cmp.Or(m.Name, m.ID))
		}
	}
	return names
}
