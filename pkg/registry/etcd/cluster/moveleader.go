// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
)

// moveTimeout bounds a move. etcd moves the leadership within an election timeout or not at
// all, and the client retries it a few times.
const moveTimeout = 15 * time.Second

// MoveLeaderREST moves the leadership to another member. It responds when that member leads.
type MoveLeaderREST struct {
	actionREST[*v1beta2.EtcdClusterLeaderMove]

	clusters rest.Getter
	prober   *prober.Prober
	clock    clock.PassiveClock
}

var (
	_ rest.NamedCreater                   = &MoveLeaderREST{}
	_ rest.SubresourceObjectMetaPreserver = &MoveLeaderREST{}
)

func newMoveLeaderREST(clusters rest.Getter, prober *prober.Prober) *MoveLeaderREST {
	return &MoveLeaderREST{
		actionREST: actionREST[*v1beta2.EtcdClusterLeaderMove]{subresource: "moveleader", empty: &v1beta2.EtcdClusterLeaderMove{}},
		clusters:   clusters, prober: prober, clock: clock.RealClock{},
	}
}

// Create moves the leadership.
func (r *MoveLeaderREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, checkName)
	if err != nil {
		return nil, err
	}
	cluster, err := r.readCluster(ctx, r.clusters, name, request)
	if err != nil {
		return nil, err
	}
	start := r.clock.Now()
	p, err := r.prober.Probe(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if p.CertificateErr != nil {
		return nil, apierrors.NewServiceUnavailable(p.CertificateErr.Error())
	}
	health := health.Diagnose(p)
	from, to, err := PlanLeaderMove(health, request.Spec.Target)
	if err != nil {
		return nil, err
	}
	result := &v1beta2.EtcdClusterLeaderMove{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID},
		Spec:       request.Spec,
		Status:     v1beta2.LeaderMoveStatus{From: from, Leader: to, Term: termOf(p, to)},
	}
	if from == to || dryrun.IsDryRun(options.DryRun) {
		return result, nil
	}
	if result.Status.Term, err = r.move(ctx, cluster, p, from, to); err != nil {
		return nil, err
	}
	result.Status.Took = metav1.Duration{Duration: r.clock.Since(start).Round(time.Millisecond)}
	klog.FromContext(ctx).Info("Leadership moved", "cluster", klog.KObj(cluster), "from", from, "to", to)
	return result, nil
}

// PlanLeaderMove returns the member that leads and the one to move the leadership to: the target,
// or the most advanced healthy follower if the target is empty. The error is that of the API.
func PlanLeaderMove(health *v1beta2.EtcdClusterHealth, target string) (from, to string, err error) {
	if !health.QuorumResponded || health.Leader == "" {
		return "", "", moveConflict(health.Name, "the cluster has no quorum or no leader (verdict %s): %s", health.Verdict, health.Message)
	}
	from = health.Leader
	if target == "" {
		best := mostAdvancedFollower(health, from)
		if best == nil {
			return "", "", moveConflict(health.Name, "no other voter is healthy; wait until get etcdclusters/%s/health shows a follower that responds", health.Name)
		}
		return from, best.Name, nil
	}
	for i := range health.Members {
		m := &health.Members[i]
		switch {
		case m.Name != target:
			continue
		case m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending || m.Role == "":
			return "", "", invalidTarget(health.Name, target, "the member does not vote; name a voter, or leave the field out")
		case !m.Responded:
			return "", "", moveConflict(health.Name, "member %s does not respond: %s; name another voter in spec.target, or leave the field out", target, m.Error)
		case m.Leader == "":
			return "", "", moveConflict(health.Name, "member %s follows no leader; send the request again, or name another voter in spec.target", target)
		}
		return from, target, nil
	}
	return "", "", invalidTarget(health.Name, target, "the cluster has no member of this name; leave the field out, or name a voter that status.memberStatuses lists")
}

// moveConflict returns the error for a move that the present state of the cluster does not allow.
func moveConflict(cluster, format string, args ...any) error {
	return apierrors.NewConflict(v1beta2.Resource("etcdclusters/moveleader"), cluster, fmt.Errorf(format, args...))
}

func invalidTarget(cluster, target, why string) error {
	return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterLeaderMove").GroupKind(), cluster,
		field.ErrorList{field.Invalid(field.NewPath("spec", "target"), target, why)})
}

// mostAdvancedFollower returns the healthy follower with the highest applied raft index, or nil.
func mostAdvancedFollower(health *v1beta2.EtcdClusterHealth, leader string) *v1beta2.MemberHealth {
	var best *v1beta2.MemberHealth
	for i := range health.Members {
		m := &health.Members[i]
		if m.Name == leader || m.Role != v1beta2.MemberRoleFollower || !m.Responded || m.Leader == "" || (m.Pod != nil && m.Pod.Terminating) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.RaftApplied, best.RaftApplied), cmp.Compare(m.RaftIndex, best.RaftIndex)) > 0 {
			best = m
		}
	}
	return best
}

func termOf(p *health.Probe, name string) int64 {
	if a := responseOf(p, name); a != nil {
		return int64(a.Health.RaftTerm)
	}
	return 0
}

func responseOf(p *health.Probe, name string) *health.Response {
	for i := range p.Responses {
		if a := &p.Responses[i]; a.Name == name && a.Err == nil {
			return a
		}
	}
	return nil
}

// moveError returns the API error for an error of etcd. It is a conflict, which clients retry,
// only if the state of the cluster that causes it changes by itself.
func moveError(cluster string, err error) error {
	err = fmt.Errorf("move the leadership of EtcdCluster %s: %w", cluster, err)
	switch {
	case errors.Is(err, etcd.ErrTimeout):
		return apierrors.NewTimeoutError(err.Error(), 0)
	case errors.Is(err, etcd.ErrUnavailable):
		return apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, etcd.ErrNoQuorum), errors.Is(err, etcd.ErrNotLeader), errors.Is(err, etcd.ErrBadTransferee):
		return apierrors.NewConflict(v1beta2.Resource("etcdclusters/moveleader"), cluster, err)
	default:
		return apierrors.NewInternalError(err)
	}
}

// move moves the leadership and returns the new raft term.
func (r *MoveLeaderREST) move(ctx context.Context, cluster *v1beta2.EtcdCluster, p *health.Probe, from, to string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	found, err := r.prober.Discover(ctx, cluster)
	if err != nil {
		return 0, err
	}
	target := responseOf(p, to)
	leader, serves := found.Endpoint(from)
	follower, exists := found.Endpoint(to)
	if target == nil || !serves || !exists {
		return 0, r.conflict(cluster.Name, "the pods of members %s and %s have changed during the request; send the request again", from, to)
	}
	only := *found
	only.Target.Endpoints = []etcd.Endpoint{leader}
	if err := r.prober.Client(&only).MoveLeader(ctx, target.Health.ID); err != nil {
		return 0, moveError(cluster.Name, err)
	}
	// The old leader reports the new one too, but the reply reports what the new leader says.
	health, err := r.prober.Client(found).Status(ctx, follower)
	if err != nil {
		return 0, apierrors.NewInternalError(fmt.Errorf("the leadership was moved to member %s, which does not respond: %w", to, err))
	}
	return int64(health.RaftTerm), nil
}
