// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// RecoverREST takes the request to go on without the quorum of a cluster. It writes the
// request into the status and returns the plan; the controller makes the plan again
// from what the members say then, and carries it out.
type RecoverREST struct {
	status rest.Updater
	clock  clock.PassiveClock
}

var (
	_ rest.NamedCreater                   = &RecoverREST{}
	_ rest.SubresourceObjectMetaPreserver = &RecoverREST{}
)

// New returns an empty request.
func (*RecoverREST) New() runtime.Object { return &v1beta2.EtcdClusterRecovery{} }

// Destroy leaves the shared store to the main resource.
func (*RecoverREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID of a request,
// which says what cluster is meant: the server wipes it otherwise.
func (*RecoverREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create asks for a recovery. With dryRun=All it only returns the plan.
func (r *RecoverREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.(*v1beta2.EtcdClusterRecovery)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an EtcdClusterRecovery, got %T", obj))
	}
	if err := named(request, name); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, request.DeepCopy()); err != nil {
			return nil, err
		}
	}
	var reply *v1beta2.EtcdClusterRecovery
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		cluster, ok := stored.DeepCopyObject().(*v1beta2.EtcdCluster)
		if !ok {
			return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", stored))
		}
		if cluster.ResourceVersion == "" {
			return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), name)
		}
		plan, err := planRecovery(cluster, request, requester(ctx), r.clock.Now())
		if err != nil {
			return nil, err
		}
		cluster.Status.Recovery = plan
		reply = &v1beta2.EtcdClusterRecovery{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace, UID: cluster.UID},
			Spec:       request.Spec,
			Status:     *plan.DeepCopy(),
		}
		return cluster, nil
	})
	_, _, err := r.status.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false,
		&metav1.UpdateOptions{DryRun: options.DryRun, FieldManager: options.FieldManager})
	if err != nil {
		return nil, err
	}
	if !dryrun.IsDryRun(options.DryRun) {
		klog.FromContext(ctx).Info("Recovery requested", "cluster", klog.KRef(reply.Namespace, name), "clusterUID", reply.UID,
			"recovery", reply.Status.ID, "source", reply.Status.Source.Member, "requestedBy", reply.Status.RequestedBy)
	}
	return reply, nil
}

// requester returns the name of the user that sent the request; empty if it is not known.
func requester(ctx context.Context) string {
	by, known := genericrequest.UserFrom(ctx)
	if !known {
		return ""
	}
	return by.GetName()
}

var (
	errServes     = errors.New("it is not known that the quorum is lost: while it may answer there is nothing to recover")
	errPaused     = errors.New("spec.paused is true: resume the cluster, or nobody carries the recovery out")
	errInProgress = errors.New("a recovery is under way; see status.recovery")
	errOther      = errors.New("spec.clusterUID is the UID of another cluster")
	errNobody     = errors.New("no member answers that the cluster could go on from: restore a backup: create etcdclusters/restore, or an EtcdRestore")
)

// planRecovery returns the recovery as the last status of the cluster lets it be planned.
func planRecovery(cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdClusterRecovery, by string, now time.Time) (*v1beta2.RecoveryStatus, error) {
	conflict := func(why error) error {
		return apierrors.NewConflict(v1beta2.Resource("etcdclusters"), cluster.Name, why)
	}
	if err := meant(cluster, request, "recover"); err != nil {
		return nil, err
	}
	switch uid := request.Spec.ClusterUID; {
	case uid != "" && uid != string(cluster.UID):
		return nil, conflict(errOther)
	case cluster.Status.Recovery.InProgress():
		return nil, conflict(errInProgress)
	case !quorumIsLost(cluster):
		return nil, conflict(errServes)
	case cluster.Spec.Paused:
		return nil, conflict(errPaused)
	}
	plan := &v1beta2.RecoveryStatus{
		ID: string(uuid.NewUUID()), Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
		Member: request.Spec.Member, RequestedAt: metav1.NewTime(now.Truncate(time.Second)), RequestedBy: by,
	}
	var source *v1beta2.MemberStatus
	silent := ""
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		plan.OldMembers = append(plan.OldMembers, m.Name)
		if m.RaftIndex == 0 {
			if m.Pod != "" || m.Claim != "" {
				silent += "; member " + m.Name + " does not answer and may hold newer ones"
			}
			continue
		}
		plan.Survivors = append(plan.Survivors, v1beta2.RecoverySurvivor{Name: m.Name, RaftIndex: m.RaftIndex, DBSize: m.DBSize})
		if wanted := request.Spec.Member; wanted == m.Name || wanted == "" && (source == nil || m.RaftIndex > source.RaftIndex) {
			source = m
		}
	}
	switch {
	case len(plan.Survivors) == 0:
		return nil, conflict(errNobody)
	case source == nil:
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterRecovery").GroupKind(), cluster.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "member"), request.Spec.Member, "is no member that answers; leave it out for the one that has lost the least"),
		})
	}
	plan.Source = v1beta2.RecoverySource{Member: source.Name, RaftIndex: source.RaftIndex}
	plan.ExpectedLoss = fmt.Sprintf("writes that %s had not applied at raft index %d: at most those that were acknowledged in the moment before the quorum was lost%s",
		source.Name, source.RaftIndex, silent)
	for _, s := range plan.Survivors {
		if s.RaftIndex > source.RaftIndex {
			plan.ExpectedLoss += fmt.Sprintf("; and %d raft entries that %s has and %s has not", s.RaftIndex-source.RaftIndex, s.Name, source.Name)
		}
	}
	version := source.Version
	if version == "" {
		version = cluster.Spec.Version
	}
	if back := resources.RevisionGoesBack(version); back != "" {
		plan.ExpectedLoss += "; " + back
	}
	return plan, nil
}

func quorumIsLost(cluster *v1beta2.EtcdCluster) bool {
	for i := range cluster.Status.Conditions {
		if c := &cluster.Status.Conditions[i]; c.Type == v1beta2.ClusterConditionQuorumLost {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
