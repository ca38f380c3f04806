// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeEtcd asks every member for itself and then one voter for the member list: a
// round at rest is one status of each member and one linearizable read. The read is what
// the safety rules need: it comes after the pods were read, and it waits for a quorum, so
// that it misses no change of the membership. A status alone proves neither.
// That nobody answers is an observation, not an error.
func (r *Reconciler) observeEtcd(ctx context.Context, key types.NamespacedName, s *seen, pods []*corev1.Pod) {
	s.target = s.to(endpoints(s.Cluster, sorted(pods))...)
	s.Etcd.Members = lastKnown(s.Cluster)
	if len(s.target.Endpoints) == 0 {
		s.Etcd.Err = "no pod of a member runs"
		r.judge(s, nil)
		return
	}
	if !s.secure() {
		s.Etcd.Err = "there is no usable client certificate to ask with"
		r.judge(s, nil)
		return
	}
	statusCtx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answers := r.Etcd.Statuses(statusCtx, s.target)
	s.voters = s.to()
	for _, e := range s.target.Endpoints {
		a := answers[e.Name]
		if a.Err != nil {
			r.secrets.doubt(key)
			s.Etcd.Err = a.Err.Error()
			if errors.Is(a.Err, etcd.ErrDenied) {
				s.Etcd.Denied = true // it serves, but not the controller
				continue
			}
			r.Waker.Await(key, s.target, e)
			continue
		}
		if pod := s.podOf(e.Name); pod != nil && pod.Terminating {
			r.Waker.AwaitEnd(key, s.target, e)
		}
		if !a.Health.Learner && a.Health.Leader != 0 {
			e.Said = &a.Health
			s.voters.Endpoints = append(s.voters.Endpoints, e)
		}
	}
	if len(s.voters.Endpoints) > 0 {
		r.readMembers(ctx, s)
	}
	if !s.Etcd.Linearizable {
		s.rememberAnswers(answers)
	}
	r.judge(s, answers)
	if !s.Etcd.Linearizable {
		r.observeViews(ctx, s, answers)
	}
	r.observeShown(ctx, s)
}

// observeViews asks those who answer what each of them knows of the membership.
func (r *Reconciler) observeViews(ctx context.Context, s *seen, answers map[string]etcd.StatusResult) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for _, e := range s.target.Endpoints {
		i := slices.IndexFunc(s.Etcd.Members, func(m planner.Member) bool { return m.Name == e.Name })
		a := answers[e.Name]
		if i < 0 || a.Err != nil || a.Health.ID != s.Etcd.Members[i].ID {
			continue
		}
		view := &planner.View{Learner: a.Health.Learner}
		s.Etcd.Members[i].View = view
		if view.Learner {
			continue
		}
		own, err := r.Etcd.OwnMembers(ctx, s.target, e)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A member does not say whom it knows", "member", e.Name, "err", err)
			continue
		}
		for _, m := range own.Members {
			view.Members = append(view.Members, member(s.Cluster, m))
		}
	}
}

// rememberAnswers adds members that answer and that the last status did not know yet: one
// of them may be all that is left.
func (s *seen) rememberAnswers(answers map[string]etcd.StatusResult) {
	for _, e := range s.target.Endpoints {
		a := answers[e.Name]
		if a.Err != nil || a.Health.ID == 0 {
			continue
		}
		s.Etcd.ClusterID = a.Health.ClusterID
		known := slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == a.Health.ID || m.Name == e.Name })
		if !known {
			s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: a.Health.ID, Name: e.Name, Started: true, Learner: a.Health.Learner})
		}
	}
}

func (r *Reconciler) readMembers(ctx context.Context, s *seen) {
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	membership, err := r.Etcd.Members(ctx, s.voters)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("No linearizable member list", "err", err)
		s.Etcd.Err = err.Error()
		s.Etcd.Denied = s.Etcd.Denied || errors.Is(err, etcd.ErrDenied)
		return
	}
	s.Etcd.Linearizable = true
	s.Etcd.Err = ""
	s.Etcd.ClusterID = membership.ClusterID
	s.Etcd.Members = nil
	for _, m := range membership.Members {
		s.Etcd.Members = append(s.Etcd.Members, member(s.Cluster, m))
	}
	slices.SortFunc(s.Etcd.Members, func(a, b planner.Member) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		default:
			return 0
		}
	})
}

// member names a member of etcd's list. One that has not started yet has no name
// there; its peer URL tells which pod it is meant for.
func member(c *v1beta2.EtcdCluster, m etcd.Member) planner.Member {
	o := planner.Member{ID: m.ID, Name: m.Name, Started: m.Name != "", Learner: m.Learner}
	for _, url := range m.PeerURLs {
		name, err := resources.MemberFromPeerURL(url)
		if err == nil && strings.HasPrefix(name, c.Name+"-") && resources.PeerURL(c, name) == url {
			o.Name = name
			return o
		}
	}
	o.Stranger = true
	return o
}

// lastKnown returns the members of the last status; they are all that is known of
// the membership while it cannot be read.
func lastKnown(c *v1beta2.EtcdCluster) []planner.Member {
	var members []planner.Member
	for i := range c.Status.MemberStatuses {
		m := &c.Status.MemberStatuses[i]
		id, err := strconv.ParseUint(m.ID, 16, 64)
		if err != nil {
			continue
		}
		members = append(members, planner.Member{
			ID:      id,
			Name:    m.Name,
			Started: m.Role != v1beta2.MemberRolePending,
			Learner: m.Role == v1beta2.MemberRoleLearner,
		})
	}
	return members
}

// judge fills what each member answered.
func (r *Reconciler) judge(s *seen, answers map[string]etcd.StatusResult) {
	for i := range s.Etcd.Members {
		m := &s.Etcd.Members[i]
		if a, asked := answers[m.Name]; asked && a.Err == nil && a.Health.ID == m.ID {
			judgeAnswer(m, a.Health)
			if m.Quota == 0 {
				m.Quota = resources.QuotaBackendBytes(s.Cluster)
			}
			s.Etcd.NoSpace = append(s.Etcd.NoSpace, noSpace(a.Health)...)
			continue
		}
		judgeSilence(m, s.podOf(m.Name))
	}
	slices.Sort(s.Etcd.NoSpace)
	s.Etcd.NoSpace = slices.Compact(s.Etcd.NoSpace)
}

// noSpace returns who has raised the alarm of a full database, as a member knows.
func noSpace(h etcd.MemberHealth) []uint64 {
	var raised []uint64
	for _, a := range h.Alarms {
		if a.Type == etcd.AlarmNoSpace {
			raised = append(raised, a.MemberID)
		}
	}
	return raised
}

func (s *seen) podOf(name string) *planner.Pod {
	for i := range s.Pods {
		if s.Pods[i].Name == name && s.Pods[i].Owned {
			return &s.Pods[i]
		}
	}
	return nil
}

func judgeAnswer(m *planner.Member, h etcd.MemberHealth) {
	m.Version, m.DBSize = h.Version, h.DBSize
	m.Quota = h.Quota
	m.RaftIndex, m.RaftApplied = h.RaftIndex, h.RaftApplied
	m.Leader = h.Leader
	for _, a := range h.Alarms {
		m.Alarms = append(m.Alarms, a.String())
	}
	if h.Leader == 0 {
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoLeader, "it knows no leader"
		return
	}
	m.Health = planner.Healthy
	if len(m.Alarms) > 0 {
		m.Reason, m.Message = planner.ReasonAlarm, strings.Join(m.Alarms, ", ")
	}
}

// judgeSilence says what the silence of a member means. A pod that Kubernetes calls
// ready and that does not answer here may be cut off from the controller only.
func judgeSilence(m *planner.Member, p *planner.Pod) {
	switch {
	case p == nil:
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoPod, "it has no pod"
	case !m.Started:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonNotStarted, "it was added and has not joined yet"
	case p.Ready:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonNoAnswer, "its pod is ready and it does not answer the controller"
	default:
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoAnswer, "it does not answer"
		if p.Waiting != "" {
			m.Message += ": " + p.Waiting
		}
	}
}

// endpoints returns the addresses of the pods that run and belong to the cluster.
func endpoints(c *v1beta2.EtcdCluster, pods []*corev1.Pod) []etcd.Endpoint {
	var list []etcd.Endpoint
	for _, p := range pods {
		if p.Status.PodIP != "" && !resources.IsPrepared(p.Annotations) && metav1.IsControlledBy(p, c) && observedPod(c, p).Running {
			list = append(list, endpointOf(c, p))
		}
	}
	return list
}
