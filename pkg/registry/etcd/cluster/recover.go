// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// RecoverREST requests a recovery from permanent quorum loss. It writes the request into
// status.recovery and returns the plan. The controller makes the plan again from what the
// members report then, and carries it out.
type RecoverREST struct {
	actionREST[*v1beta2.EtcdClusterRecovery]

	clusters rest.Updater
	clock    clock.PassiveClock
}

var (
	_ rest.NamedCreater                   = &RecoverREST{}
	_ rest.SubresourceObjectMetaPreserver = &RecoverREST{}
)

func newRecoverREST(clusters rest.Updater) *RecoverREST {
	return &RecoverREST{
		actionREST: actionREST[*v1beta2.EtcdClusterRecovery]{subresource: "recover", empty: &v1beta2.EtcdClusterRecovery{}},
		clusters:   clusters, clock: clock.RealClock{},
	}
}

// Create requests a recovery. With dryRun=All it only returns the plan.
func (r *RecoverREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, checkName)
	if err != nil {
		return nil, err
	}
	cluster, err := r.updateCluster(ctx, r.clusters, name, request, options, func(cluster *v1beta2.EtcdCluster) error {
		plan, err := planRecovery(cluster, request, requestUser(ctx), r.clock.Now())
		cluster.Status.Recovery = plan
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := &v1beta2.EtcdClusterRecovery{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace, UID: cluster.UID},
		Spec:       request.Spec,
		Status:     *cluster.Status.Recovery.DeepCopy(),
	}
	if !dryrun.IsDryRun(options.DryRun) {
		klog.FromContext(ctx).Info("Recovery requested", "cluster", klog.KRef(reply.Namespace, name), "clusterUID", reply.UID,
			"recovery", reply.Status.ID, "source", reply.Status.Source.Member, "requestedBy", reply.Status.RequestedBy)
	}
	return reply, nil
}

var (
	errQuorumMayRespond = errors.New("the quorum is not known to be lost: a quorum that responds needs no recovery; see the condition QuorumLost")
	errPaused           = errors.New("spec.paused is true, so the controller would not carry the recovery out: set spec.paused=false")
	errOldMembers       = errors.New("the cluster has members that another program runs, and nothing proves that they are lost: bring them back; " +
		"if they are lost, restore a backup into a new EtcdCluster")
	errInProgress = errors.New("a recovery is in progress: see status.recovery")
	errOtherUID   = errors.New("spec.clusterUID is the UID of another cluster: send the request with the UID of this EtcdCluster")
	errNoSource   = fmt.Errorf("%w: a survivor that has restarted responds only while a quorum of voters runs; bring back a quorum, "+
		"or restore a backup: create etcdclusters/restore, or an EtcdRestore. Where the disks of a majority are damaged and one is whole, "+
		"see \"Damaged disks\" of docs/how-to/quorum-loss.md", diagnosis.ErrNoSource)
)

// planRecovery returns the recovery that the controller would carry out if the cluster were
// as its last status says. The controller plans it again, from the facts of that time and
// with the same function of package diagnosis.
func planRecovery(cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdClusterRecovery, by string, now time.Time) (*v1beta2.RecoveryStatus, error) {
	if err := rejectRecovery(cluster, request); err != nil {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters"), cluster.Name, err)
	}
	plan, err := diagnosis.FromStatus(cluster, resources.RevisionGoesBack).PlanRecovery(request.Spec.Member)
	switch {
	case errors.Is(err, diagnosis.ErrNoSource):
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters"), cluster.Name, errNoSource)
	case errors.Is(err, diagnosis.ErrSeveralVolumes), errors.Is(err, diagnosis.ErrDataDiffers):
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters"), cluster.Name, fmt.Errorf("%w; name one of them in spec.member", err))
	case errors.Is(err, diagnosis.ErrNoVolume):
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterRecovery").GroupKind(), cluster.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "member"), request.Spec.Member, err.Error()+"; name another member, or restore a backup"),
		})
	case err != nil:
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterRecovery").GroupKind(), cluster.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "member"), request.Spec.Member, err.Error()+"; omit it to recover from the member that has lost the least"),
		})
	}
	return &v1beta2.RecoveryStatus{
		ID: string(uuid.NewUUID()), Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
		Member: request.Spec.Member, RequestedAt: metav1.NewTime(now.Truncate(time.Second)), RequestedBy: by,
		Source:       plan.APISource(),
		Survivors:    plan.APISurvivors(),
		ExpectedLoss: plan.EstimatedDataLoss,
		OldMembers:   memberNames(cluster),
	}, nil
}

// rejectRecovery returns why a cluster must not be recovered now; nil if it may be.
func rejectRecovery(cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdClusterRecovery) error {
	switch uid := request.Spec.ClusterUID; {
	case uid != "" && uid != string(cluster.UID):
		return errOtherUID
	case cluster.Status.Recovery.IsInProgress():
		return errInProgress
	case slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged }):
		return errOldMembers
	case !isQuorumLost(cluster):
		return errQuorumMayRespond
	case cluster.Spec.Paused:
		return errPaused
	default:
		return nil
	}
}

func memberNames(cluster *v1beta2.EtcdCluster) []string {
	var names []string
	for i := range cluster.Status.MemberStatuses {
		names = append(names, cluster.Status.MemberStatuses[i].Name)
	}
	return names
}

// isQuorumLost is true if the last status says for sure that the quorum is lost.
func isQuorumLost(cluster *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionQuorumLost && c.Status == corev1.ConditionTrue
	})
}
