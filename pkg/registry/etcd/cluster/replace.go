// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ReplaceREST requests that other members replace the members that the request names: for a
// disk or a node that does not come back.
type ReplaceREST struct {
	operationREST
}

var (
	_ rest.NamedCreater                   = &ReplaceREST{}
	_ rest.SubresourceObjectMetaPreserver = &ReplaceREST{}
)

// Create writes the operation into the status of the cluster and returns it, with a message
// that says what will happen to each member.
func (r *ReplaceREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, checkName)
	if err != nil {
		return nil, err
	}
	operation := r.newOperation(ctx, v1beta2.OperationReplace)
	operation.Members = slices.Clone(request.Spec.Members)
	cluster, err := r.updateCluster(ctx, r.clusters, name, request, options, func(cluster *v1beta2.EtcdCluster) error {
		if err := r.checkReplaceable(cluster); err != nil {
			return err
		}
		if errs := validateReplaced(cluster, request.Spec.Members); len(errs) > 0 {
			return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterOperation").GroupKind(), cluster.Name, errs)
		}
		if err := r.checkReplacedBesideOld(cluster, request.Spec.Members); err != nil {
			return err
		}
		cluster.Status.Operation = operation.DeepCopy()
		cluster.Status.Operation.Message = describeReplacement(cluster, request.Spec.Members)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return operationReply(cluster, request), nil
}

// checkReplaceable rejects a request while no member can be replaced.
func (r *ReplaceREST) checkReplaceable(cluster *v1beta2.EtcdCluster) error {
	if err := r.checkNoOperation(cluster); err != nil {
		return err
	}
	if err := r.checkHasMembers(cluster); err != nil {
		return err
	}
	switch {
	case isQuorumLost(cluster):
		return r.conflict(cluster.Name, "the quorum is lost, so no member can join or be removed; see the condition QuorumLost for what brings it back")
	case cluster.Status.Recovery.IsInProgress():
		return r.conflict(cluster.Name, "a recovery is under way, which replaces all members; wait until status.recovery shows that it has ended")
	case hasCorruptData(cluster):
		return r.conflict(cluster.Name, "the data of the members differs (alarm CORRUPT): another member would copy that of the leader, which may be the wrong one. "+
			"Find the member that differs first, as docs/how-to/corrupt-member.md says")
	}
	return nil
}

// checkReplacedBesideOld rejects the replacement of a member that serves while old members of a running etcd may be left. A
// member of the cluster that does not serve is replaced beside them, too.
func (r *ReplaceREST) checkReplacedBesideOld(cluster *v1beta2.EtcdCluster, members []string) error {
	for i := range cluster.Status.MemberStatuses {
		if m := &cluster.Status.MemberStatuses[i]; m.Healthy == corev1.ConditionTrue && slices.Contains(members, m.Name) {
			return r.checkNoOldMembers(cluster, ". Member "+m.Name+" serves; only members that do not serve are replaced before that")
		}
	}
	return nil
}

func hasCorruptData(cluster *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		return slices.ContainsFunc(m.Alarms, func(alarm string) bool { return strings.HasPrefix(alarm, string(etcd.AlarmCorrupt)) })
	})
}

func validateReplaced(cluster *v1beta2.EtcdCluster, members []string) field.ErrorList {
	path := field.NewPath("spec", "members")
	if len(members) == 0 {
		return field.ErrorList{field.Required(path, "name the members to replace; status.memberStatuses lists them")}
	}
	errs := validateMembers(cluster, members)
	for i, member := range members {
		for j := range cluster.Status.MemberStatuses {
			switch m := &cluster.Status.MemberStatuses[j]; {
			case m.Name != member:
			case m.Unmanaged:
				errs = append(errs, field.Invalid(path.Index(i), member, "another program runs the member, and only members of the cluster are replaced; "+
					"the program that runs it must replace it"))
			case m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending:
				errs = append(errs, field.Invalid(path.Index(i), member, "the member has not joined yet, and only voters that have joined are replaced; wait until it votes"))
			}
		}
	}
	return errs
}

// describeReplacement says what a replacement does to each member.
func describeReplacement(cluster *v1beta2.EtcdCluster, members []string) string {
	retained := cluster.Spec.Pod != nil && cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy != nil &&
		cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy.WhenScaled == v1beta2.PVCRetain
	var parts []string
	for _, member := range members {
		i := slices.IndexFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Name == member })
		text := "member " + member
		if node := cluster.Status.MemberStatuses[i].Node; node != "" {
			text += " on node " + node
		}
		switch {
		case cluster.Status.MemberStatuses[i].Claim == "":
		case retained:
			text += ", whose PVC stays"
		default:
			text += ", whose PVC is deleted"
		}
		parts = append(parts, text)
	}
	text := "another member joins and votes before each of these is removed: " + strings.Join(parts, "; ")
	if !knowsLearners(cluster) {
		text += "; etcd before 3.4 adds no member while one does not respond, so a member that does not respond is removed before its successor joins"
	}
	return text
}

// knowsLearners is true if every member that the status names runs an etcd that knows learners.
func knowsLearners(cluster *v1beta2.EtcdCluster) bool {
	return resources.HasLearners(resources.Version(cluster)) && !slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		return m.Version != "" && !resources.HasLearners(m.Version)
	})
}
