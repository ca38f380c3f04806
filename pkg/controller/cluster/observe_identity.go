// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// recordedClusterIDs returns the cluster IDs that members may respond with: that of the record, and while
// the data moves to new members those of both. Empty: the record has none.
func recordedClusterIDs(record planner.Record) []uint64 {
	texts := []string{record.ClusterID}
	if r := record.Recovery; r.IsInProgress() {
		texts = append(texts, r.OldClusterID, r.ClusterID)
	}
	var ids []uint64
	for i, text := range texts {
		id, err := strconv.ParseUint(text, 16, 64)
		if err != nil && i == 0 {
			return nil
		}
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// identify finds out which cluster ID is that of the cluster, if no record says it: the ID of most responses that
// prove themselves. A response with another ID does not count. A response alone proves nothing: the address of a pod that
// has ended may be that of a member of another cluster by now. What is written into the record stays there.
func (s *seen) identify(ctx context.Context, members Etcd, statuses map[string]etcd.StatusResult) {
	if len(s.clusterIDs) > 0 || s.Record.Recovery.IsInProgress() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	unproven, proven, proofs := map[string]error{}, map[uint64]int{}, 0
	for _, e := range s.target.Endpoints {
		a := statuses[e.Name]
		if a.Err != nil {
			continue
		}
		if err := prove(ctx, members, s.Cluster, s.target, e, a.Health); err != nil {
			unproven[e.Name] = err
			continue
		}
		proven[a.Health.ClusterID]++
		proofs++
	}
	for id, n := range proven {
		if 2*n > proofs {
			s.clusterIDs = []uint64{id}
		}
	}
	if proofs == 0 {
		s.clusterIDs = idOfLearners(s.Cluster, statuses, unproven)
		s.Etcd.Unlisted = len(s.clusterIDs) > 0
	}
	for _, e := range s.target.Endpoints {
		if a := statuses[e.Name]; a.Err == nil && !slices.Contains(s.clusterIDs, a.Health.ClusterID) {
			if a.Err = unproven[e.Name]; a.Err == nil || len(s.clusterIDs) > 0 {
				a.Err = otherClusterError(e, errUnlike)
			}
			statuses[e.Name] = a
		}
	}
	s.target = s.to(s.target.Endpoints...)
}

// idOfLearners returns the cluster ID of learners, such as one that has survived all voters: they give no list away, and
// no recovery could follow them without an ID. Each must have the member ID that the last status gives this name. etcd
// derives that ID from the token of the cluster, so no other cluster has it by accident. nil if anything else responds
// that has not proven itself: it may prove another ID later, and until then the cluster waits.
func idOfLearners(c *v1beta2.EtcdCluster, statuses map[string]etcd.StatusResult, unproven map[string]error) []uint64 {
	var ids []uint64
	for name, err := range unproven {
		health := statuses[name].Health
		isReported := slices.ContainsFunc(c.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
			id, err := strconv.ParseUint(m.ID, 16, 64)
			return err == nil && !m.Unmanaged && m.Name == name && id == health.ID
		})
		if !errors.Is(err, etcd.ErrLearner) || !isReported {
			return nil
		}
		if !slices.Contains(ids, health.ClusterID) {
			ids = append(ids, health.ClusterID)
		}
	}
	if len(ids) != 1 {
		return nil
	}
	return ids
}

// prove returns nil if the member at e proves that it is that of the pod. Its own member list has its ID at the peer
// URL of this pod, or under its name. Names are random and never used twice, so no list of another cluster has them by
// accident. The URL differs after etcdctl member update, or if PVCs were taken back by a cluster with another
// domain. The rule for unmanaged members says how to set it back. Only TLS keeps out an etcd that was made to say so.
func prove(ctx context.Context, members Etcd, c *v1beta2.EtcdCluster, target etcd.Target, e etcd.Endpoint, health etcd.MemberHealth) error {
	own, err := members.OwnMembers(ctx, target, e)
	if err != nil {
		return err // a learner gives no list away
	}
	isOfPod := func(listed etcd.Member) bool {
		m := member(c, listed)
		return m.ID == health.ID && (m.Name == e.Name || m.Unmanaged && m.OwnName == e.Name)
	}
	if own.ClusterID != health.ClusterID || !slices.ContainsFunc(own.Members, isOfPod) {
		return otherClusterError(e, errUnnamed)
	}
	return nil
}

func otherClusterError(e etcd.Endpoint, cause error) error {
	return &etcd.Error{Op: "status", Member: e.Name, Kind: etcd.ErrOtherCluster, Cause: cause}
}

// No record says the cluster ID, and this response does not prove that it is one of this cluster.
var (
	errUnlike  = errors.New("most members that respond have another cluster ID")
	errUnnamed = errors.New("its member list does not name the member of this pod")
)

// noteOtherCluster says which cluster responds at the addresses of the members, if no member of this cluster
// responds. A learner whose cluster ID nothing confirms counts, too.
func (s *seen) noteOtherCluster(statuses map[string]etcd.StatusResult) {
	other, learner := uint64(0), uint64(0) // the largest is the same in each observation
	for _, a := range statuses {
		switch {
		case a.Err == nil:
			return
		case errors.Is(a.Err, etcd.ErrOtherCluster):
			other = max(other, a.Health.ClusterID)
		case errors.Is(a.Err, etcd.ErrLearner):
			learner = max(learner, a.Health.ClusterID)
		}
	}
	if other != 0 || learner != 0 {
		s.Etcd.OtherClusterID, s.Etcd.LearnerClusterID = cmp.Or(learner, other), learner
	}
}

// judgeOtherCluster is about a member at whose address a member of another cluster responds.
func judgeOtherCluster(m *planner.Member, other uint64) {
	m.Health, m.Reason = planner.Unknown, planner.ReasonClusterIDMismatch
	m.Message = fmt.Sprintf("a member of another etcd cluster responds at its address: its cluster ID is %x", other)
}
