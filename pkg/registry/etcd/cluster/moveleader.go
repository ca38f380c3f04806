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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/picture"
)

// moveTimeout bounds a move. etcd hands over within an election time-out or not at all,
// and it is tried again a few times.
const moveTimeout = 15 * time.Second

// MoveLeaderREST makes another member lead. It answers when that one does.
type MoveLeaderREST struct {
	clusters getter
	asker    *live.Asker
	clock    clock.PassiveClock
}

var (
	_ rest.NamedCreater                   = &MoveLeaderREST{}
	_ rest.SubresourceObjectMetaPreserver = &MoveLeaderREST{}
)

// New returns an empty request.
func (r *MoveLeaderREST) New() runtime.Object { return &v1beta2.EtcdClusterLeaderMove{} }

// Destroy leaves what is shared to the main resource.
func (r *MoveLeaderREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID of a request,
// which says what cluster is meant.
func (r *MoveLeaderREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create moves the leadership.
func (r *MoveLeaderREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.(*v1beta2.EtcdClusterLeaderMove)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an EtcdClusterLeaderMove, got %T", obj))
	}
	if err := named(request, name); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	cluster, err := read(ctx, r.clusters, name)
	if err != nil {
		return nil, err
	}
	if err := meant(cluster, request, "moveleader"); err != nil {
		return nil, err
	}
	start := r.clock.Now()
	p, err := r.asker.Ask(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if p.CertificateErr != nil {
		return nil, apierrors.NewServiceUnavailable(p.CertificateErr.Error())
	}
	health := picture.Health(p)
	from, to, err := handOver(health, request.Spec.Target)
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

// handOver says who leads and who shall.
func handOver(health *v1beta2.EtcdClusterHealth, target string) (from, to string, err error) {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(v1beta2.Resource("etcdclusters/moveleader"), health.Name, fmt.Errorf(format, args...))
	}
	if !health.QuorumAnswered || health.Leader == "" {
		return "", "", conflict("the verdict on the cluster is %s: %s", health.Verdict, health.Message)
	}
	from = health.Leader
	if target == "" {
		best := furthest(health, from)
		if best == nil {
			return "", "", conflict("no other voter serves")
		}
		return from, best.Name, nil
	}
	for i := range health.Members {
		m := &health.Members[i]
		switch {
		case m.Name != target:
			continue
		case m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending || m.Role == "":
			return "", "", refuseTarget(health.Name, target, "it does not vote")
		case !m.Answered:
			return "", "", conflict("member %s does not answer: %s", target, m.Error)
		case m.Leader == "":
			return "", "", conflict("member %s follows no leader", target)
		}
		return from, target, nil
	}
	return "", "", refuseTarget(health.Name, target, "the cluster has no such member")
}

func refuseTarget(cluster, target, why string) error {
	return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterLeaderMove").GroupKind(), cluster,
		field.ErrorList{field.Invalid(field.NewPath("spec", "target"), target, why)})
}

// furthest returns the follower that serves and has applied the most, or nil.
func furthest(health *v1beta2.EtcdClusterHealth, leader string) *v1beta2.MemberHealth {
	var best *v1beta2.MemberHealth
	for i := range health.Members {
		m := &health.Members[i]
		if m.Name == leader || m.Role != v1beta2.MemberRoleFollower || !m.Answered || m.Leader == "" || (m.Pod != nil && m.Pod.Terminating) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.RaftApplied, best.RaftApplied), cmp.Compare(m.RaftIndex, best.RaftIndex)) > 0 {
			best = m
		}
	}
	return best
}

func termOf(p *picture.Picture, name string) int64 {
	if a := answerOf(p, name); a != nil {
		return int64(a.Health.RaftTerm)
	}
	return 0
}

func answerOf(p *picture.Picture, name string) *picture.Answer {
	for i := range p.Answers {
		if a := &p.Answers[i]; a.Name == name && a.Err == nil {
			return a
		}
	}
	return nil
}

// moveError returns why a leader did not hand over. Only a state of the cluster that changes
// by itself is a conflict, after which clients try again.
func moveError(cluster string, err error) error {
	err = fmt.Errorf("move the leader of cluster %s: %w", cluster, err)
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

// move hands over and returns the new term.
func (r *MoveLeaderREST) move(ctx context.Context, cluster *v1beta2.EtcdCluster, p *picture.Picture, from, to string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	found, err := r.asker.Find(ctx, cluster)
	if err != nil {
		return 0, err
	}
	target := answerOf(p, to)
	leader, serves := found.Endpoint(from)
	follower, exists := found.Endpoint(to)
	if target == nil || !serves || !exists {
		return 0, apierrors.NewConflict(v1beta2.Resource("etcdclusters/moveleader"), cluster.Name, errors.New("its pods have changed meanwhile; ask again"))
	}
	only := *found
	only.Target.Endpoints = []etcd.Endpoint{leader}
	if err := r.asker.Client(&only).MoveLeader(ctx, target.Health.ID); err != nil {
		return 0, moveError(cluster.Name, err)
	}
	// The old leader knows of the new one; say only what that one says itself.
	health, err := r.asker.Client(found).Status(ctx, follower)
	if err != nil {
		return 0, apierrors.NewInternalError(fmt.Errorf("the leadership was handed to %s, which does not answer: %w", to, err))
	}
	return int64(health.RaftTerm), nil
}
