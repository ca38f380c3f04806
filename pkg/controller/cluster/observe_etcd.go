// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeEtcd reads the status of every member, then the member list from one voter, and then asks
// each voter for a linearizable read. At rest these are two small requests to each member, and one
// more to the leader. The safety rules need a list that is read after the pods and through a quorum,
// so that it misses no change of the membership. The statuses alone do not prove that. If no member
// responds, that is an observation and not an error.
func observeEtcd(ctx context.Context, r *run, pods []*corev1.Pod) {
	r.seen.clusterIDs = recordedClusterIDs(r.seen.Record)
	r.seen.target = r.seen.to(endpoints(r.seen.Cluster, slices.DeleteFunc(sorted(pods), func(p *corev1.Pod) bool { return r.seen.isPrepared(p) }))...)
	r.seen.Etcd.Members = r.seen.lastKnown()
	r.seen.addTakenBack()
	observeExisting(ctx, r)
	if len(r.seen.target.Endpoints) == 0 && r.seen.canSendRequests() {
		probePrepared(ctx, r, pods, map[string]etcd.StatusResult{})
	}
	if len(r.seen.target.Endpoints) == 0 && len(r.seen.existing.Endpoints) == 0 {
		if r.seen.Etcd.Err != "" {
			judge(r, nil)
			return
		}
		r.seen.Etcd.Err = "no pod of a member runs"
		judge(r, nil)
		return
	}
	if !r.seen.canSendRequests() {
		r.seen.existing = etcd.Target{}
		r.seen.Etcd.Unasked, r.seen.Etcd.Err = true, "there is no usable client certificate to ask with"
		judge(r, nil)
		return
	}
	statusCtx, cancel := context.WithTimeout(ctx, r.seen.patience())
	defer cancel()
	statuses := r.Etcd.Statuses(statusCtx, r.seen.to(slices.Concat(r.seen.target.Endpoints, r.seen.existing.Endpoints)...))
	r.seen.identify(ctx, r.Etcd, statuses)
	r.seen.voters = r.seen.to()
	useStatuses(r, r.seen.target.Endpoints, statuses)
	r.seen.observeTaken(statuses)
	r.seen.existing.Endpoints = leaveOthers(ctx, r, r.seen.existing.Endpoints, statuses)
	r.seen.useExisting(statuses)
	readList(ctx, r, statuses)
	observePrepared(ctx, r, pods, statuses)
	if !r.seen.Etcd.Linearizable {
		r.seen.noteOtherCluster(statuses)
	}
	takesOver := len(r.seen.existing.Endpoints) > 0
	observeOldMembers(ctx, r, statuses)
	judge(r, statuses)
	if r.seen.Etcd.Linearizable || takesOver { // old members may serve without the members of the cluster
		observeReads(ctx, r)
	}
	if !r.seen.Etcd.Linearizable {
		observeViews(ctx, r, statuses)
		planner.TakeUpStarted(&r.seen.Observed)
		if len(r.seen.lastKnown()) == 0 || len(r.seen.takenBack()) > 0 {
			r.seen.addViewedMembers()
		} else {
			r.seen.addAwaitedVoter()
		}
	}
	observeClusterVersion(ctx, r, statuses)
	observeShown(ctx, r)
}

// useStatuses says what does not respond at these endpoints of members, and which voters do.
func useStatuses(r *run, endpoints []etcd.Endpoint, statuses map[string]etcd.StatusResult) {
	for _, e := range endpoints {
		a := statuses[e.Name]
		if a.Err != nil {
			r.secrets.invalidate(r.key)
			r.seen.Etcd.Err = a.Err.Error()
			isDenied := errors.Is(a.Err, etcd.ErrDenied) // it serves, but not the controller
			r.seen.Etcd.Denied = r.seen.Etcd.Denied || isDenied
			if !isDenied && (a.Health.ID == 0 || len(r.seen.clusterIDs) > 0) { // what responds without proof would end the wait at once
				r.Waker.Await(r.key, r.seen.target, e)
			}
			continue
		}
		if pod := r.seen.podOf(e.Name); pod != nil && pod.Terminating {
			r.Waker.AwaitEnd(r.key, r.seen.target, e)
		}
		if !a.Health.Learner && a.Health.Leader != 0 {
			e.Status = &a.Health
			r.seen.voters.Endpoints = append(r.seen.voters.Endpoints, e)
		}
	}
}

// patience returns how long the members may take to tell their status.
func (s *seen) patience() time.Duration {
	unhealthy := func(m v1beta2.MemberStatus) bool { return m.Healthy != corev1.ConditionTrue }
	if slices.ContainsFunc(s.Cluster.Status.MemberStatuses, unhealthy) {
		return statusTimeout
	}
	return healthyTimeout
}

// observeReads finds the voters that respond and do not serve. Their status comes from
// memory: a voter whose disk takes no writes still says that it has a leader. While no
// quorum confirms a list this read proves nothing about a single voter, unless old members may be the
// quorum.
func observeReads(ctx context.Context, r *run) {
	if n := len(r.seen.voters.Endpoints); n == 0 || n == 1 && r.seen.Etcd.Linearizable && len(r.seen.lastResort) == 0 {
		return // the member list came from this voter
	}
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	for name, err := range r.Etcd.FailedReads(ctx, r.seen.voters) {
		klog.FromContext(ctx).V(2).Info("A voter responds and does not serve", "member", name, "err", err)
		for i := range r.seen.Etcd.Members {
			if m := &r.seen.Etcd.Members[i]; m.Name == name && m.Health == planner.Healthy {
				m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNotServing, notServing
			}
		}
	}
}

// notServing is the message of a member that responds and does not serve.
const notServing = "it responds, and it does not complete a linearizable read: its disk may not take writes, or it does not reach the other members"

// stillLearner is the message of a voter that has not applied its promotion yet. It cannot read
// through a quorum, so no read shows whether its disk takes writes.
const stillLearner = "it responds as a learner: it has not applied yet that it votes"

// observeViews asks the members that respond what each of them knows of the membership.
func observeViews(ctx context.Context, r *run, statuses map[string]etcd.StatusResult) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for _, e := range r.seen.target.Endpoints {
		i := slices.IndexFunc(r.seen.Etcd.Members, func(m planner.Member) bool { return m.Name == e.Name })
		a := statuses[e.Name]
		if i < 0 || a.Err != nil || a.Health.ID != r.seen.Etcd.Members[i].ID {
			continue
		}
		view := &planner.View{Learner: a.Health.Learner}
		r.seen.Etcd.Members[i].View = view
		if view.Learner {
			continue
		}
		own, err := r.Etcd.OwnMembers(ctx, r.seen.target, e)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot read the member list of one member", "member", e.Name, "err", err)
			continue
		}
		for _, m := range own.Members {
			view.Members = append(view.Members, member(r.seen.Cluster, m))
		}
	}
}

// addRespondingMembers adds members that respond and that the last status did not contain.
// Such a member may be the only survivor.
func (s *seen) addRespondingMembers(statuses map[string]etcd.StatusResult) {
	for _, e := range s.target.Endpoints {
		a := statuses[e.Name]
		if a.Err != nil || a.Health.ID == 0 {
			continue
		}
		s.Etcd.ClusterID = a.Health.ClusterID
		s.identifyTakenBack(e.Name, a.Health.ID)
		known := slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == a.Health.ID || m.Name == e.Name })
		if !known {
			s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: a.Health.ID, Name: e.Name, Started: true, Learner: a.Health.Learner})
		}
	}
}

// addViewedMembers adds the members that the most advanced member that responds knows. It is
// for a status that names no members, as after the API was brought back from a backup. A
// view alone may name a member that was removed since.
func (s *seen) addViewedMembers() {
	var latest *planner.Member
	for i := range s.Etcd.Members {
		if m := &s.Etcd.Members[i]; m.View != nil && len(m.View.Members) > 0 && (latest == nil || m.RaftIndex > latest.RaftIndex) {
			latest = m
		}
	}
	if latest == nil {
		return
	}
	for _, viewed := range latest.View.Members {
		known := slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == viewed.ID || m.Name == viewed.Name })
		if known || viewed.Unmanaged {
			continue
		}
		judgeUnresponsive(&viewed, s.podOf(viewed.Name))
		s.Etcd.Members = append(s.Etcd.Members, viewed)
	}
}

// addAwaitedVoter adds the second voter of an etcd without learners. The quorum ended when this voter
// was added, so no list has named it. The status must name it while the first voter responds: once
// that one was restarted, it responds to no client before the second voter has started. Its list may
// be from before a third member joined, so there must be no pod and no PVC of another member.
func (s *seen) addAwaitedVoter() {
	if len(s.Etcd.Members) != 1 || resources.HasLearners(s.Etcd.Members[0].Version) {
		return
	}
	only := &s.Etcd.Members[0]
	if only.View == nil || len(only.View.Members) != 2 {
		return
	}
	for _, awaited := range only.View.Members {
		other := func(name string) bool { return name != awaited.Name && name != only.Name }
		if awaited.Name == only.Name || awaited.Started || awaited.Unmanaged || s.podOf(awaited.Name) == nil ||
			slices.ContainsFunc(s.Pods, func(p planner.Pod) bool { return other(p.Name) }) ||
			slices.ContainsFunc(s.PVCs, func(c planner.PVC) bool { return other(c.Name) }) {
			continue
		}
		judgeUnresponsive(&awaited, s.podOf(awaited.Name))
		s.Etcd.Members = append(s.Etcd.Members, awaited)
	}
}

// readList reads the member list from the voters, and otherwise from old members if their list proves itself.
func readList(ctx context.Context, r *run, statuses map[string]etcd.StatusResult) {
	if len(r.seen.voters.Endpoints) > 0 {
		readMembers(ctx, r)
	}
	if r.seen.Etcd.Linearizable {
		r.seen.lastResort = nil
		return
	}
	readThroughOldMembers(ctx, r, statuses)
}

func readMembers(ctx context.Context, r *run) {
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	membership, err := r.Etcd.Members(ctx, r.seen.voters)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("No linearizable member list", "err", err)
		r.seen.Etcd.Err = err.Error()
		r.seen.Etcd.Denied = r.seen.Etcd.Denied || errors.Is(err, etcd.ErrDenied)
		r.seen.Etcd.ListTooLarge = errors.Is(err, etcd.ErrTooLarge)
		return
	}
	r.seen.useMembership(membership)
}

// useMembership makes a list that was read through a quorum that of the observation.
func (s *seen) useMembership(membership etcd.Membership) {
	s.Etcd.Linearizable = true
	s.Etcd.Err = ""
	s.Etcd.ClusterID = membership.ClusterID
	s.Etcd.Members, s.listed = nil, membership.Members
	for _, m := range membership.Members {
		s.Etcd.Members = append(s.Etcd.Members, member(s.Cluster, m))
	}
	slices.SortFunc(s.Etcd.Members, func(a, b planner.Member) int { return cmp.Compare(a.ID, b.ID) })
	if s.Cluster.Existing() != nil {
		s.nameOldMembers()
	}
}

// member names a member of etcd's list. A member that has not started yet has no name
// there; its peer URL tells which pod it belongs to. Every other member is named by its ID; see
// planner.Member.
func member(c *v1beta2.EtcdCluster, m etcd.Member) planner.Member {
	o := planner.Member{ID: m.ID, Name: m.Name, Started: m.Name != "", Learner: m.Learner}
	for _, url := range m.PeerURLs {
		name, err := resources.MemberFromPeerURL(url)
		if err == nil && strings.HasPrefix(name, c.Name+"-") && resources.PeerURL(c, name) == url {
			o.Name = name
			return o
		}
	}
	o.Unmanaged, o.PeerURLs, o.OwnName, o.Name = true, m.PeerURLs, m.Name, strconv.FormatUint(m.ID, 16)
	return o
}

// lastKnown returns the members of the last status; they are all that is known of
// the membership while it cannot be read. The status may be from before a removal. Members of an etcd that the cluster
// no longer joins are none of its members.
func (s *seen) lastKnown() []planner.Member {
	var members []planner.Member
	neverJoined := s.Cluster.Existing() == nil && !hasBegun(s.Cluster)
	for i := range s.Cluster.Status.MemberStatuses {
		m := &s.Cluster.Status.MemberStatuses[i]
		id, err := strconv.ParseUint(m.ID, 16, 64)
		if err != nil || m.Unmanaged && neverJoined || !m.Unmanaged && slices.Contains(s.Record.Removed, m.Name) {
			continue
		}
		members = append(members, planner.Member{
			ID: id, Name: m.Name, Unmanaged: m.Unmanaged,
			Started: m.Role != v1beta2.MemberRolePending,
			Learner: m.Role == v1beta2.MemberRoleLearner,
		})
	}
	return members
}

// judge fills in the health of each member.
func judge(r *run, statuses map[string]etcd.StatusResult) {
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		if a, asked := statuses[m.Name]; asked && a.Err == nil && a.Health.ID == m.ID {
			judgeResponse(m, a.Health)
			if r.seen.Etcd.Linearizable && !m.Learner && a.Health.Learner && m.Health == planner.Healthy {
				m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNotServing, stillLearner
			}
			continue
		}
		judgeUnresponsive(m, r.seen.podOf(m.Name))
		if a := statuses[m.Name]; errors.Is(a.Err, etcd.ErrOtherCluster) {
			judgeOtherCluster(m, a.Health.ClusterID)
		}
	}
}

func (s *seen) podOf(name string) *planner.Pod {
	for i := range s.Pods {
		if s.Pods[i].Name == name && s.Pods[i].Owned {
			return &s.Pods[i]
		}
	}
	return nil
}

func judgeResponse(m *planner.Member, h etcd.MemberHealth) {
	m.Version, m.DBSize = h.Version, h.DBSize
	m.Quota = h.Quota
	m.RaftIndex, m.RaftApplied = h.RaftIndex, h.RaftApplied
	m.Leader = h.Leader
	for _, a := range h.Alarms {
		m.Alarms = append(m.Alarms, planner.Alarm{Type: string(a.Type), RaisedBy: a.MemberID})
	}
	if h.Leader == 0 {
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoLeader, "it knows no leader"
		return
	}
	m.Health = planner.Healthy
	if len(m.Alarms) > 0 {
		m.Reason, m.Message = planner.ReasonAlarm, strings.Join(planner.AlarmTexts(m), ", ")
	}
}

// judgeUnresponsive tells why a member may be unresponsive. A pod that Kubernetes calls
// ready, and that does not respond here, may be cut off from the controller only.
func judgeUnresponsive(m *planner.Member, p *planner.Pod) {
	switch {
	case m.Unmanaged && p == nil && !m.Started:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonNotStarted, "another program added it, and it has not started"
	case m.Unmanaged && p == nil:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonUnresponsive, "it does not respond to the controller"
	case p == nil:
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoPod, "it has no pod"
	case !m.Started:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonNotStarted, "it was added and has not joined yet"
	case p.Ready:
		m.Health, m.Reason, m.Message = planner.Unknown, planner.ReasonUnresponsive, "its pod is ready, and it does not respond to the controller"
	default:
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonUnresponsive, "it does not respond"
		if p.Waiting != "" {
			m.Message += ": " + p.Waiting
		}
	}
}

// endpoints returns the addresses of those of the pods that run and belong to the cluster.
func endpoints(c *v1beta2.EtcdCluster, pods []*corev1.Pod) []etcd.Endpoint {
	var list []etcd.Endpoint
	for _, p := range pods {
		if cs := etcdStatus(p); p.Status.PodIP != "" && resources.Owns(c, p) && cs != nil && cs.State.Running != nil {
			list = append(list, endpointOf(c, p))
		}
	}
	return list
}

// endpoint returns the endpoint of the member called name.
func (s *seen) endpoint(name string) (etcd.Endpoint, bool) {
	for _, e := range s.target.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return etcd.Endpoint{}, false
}
