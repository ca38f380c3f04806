// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func addMember(ctx context.Context, r *run, a planner.AddMember) error {
	if a.For == planner.AddSuccessor {
		if err := requireSameSpec(ctx, r); err != nil {
			return err
		}
	}
	add := r.Etcd.AddLearner
	if a.As == planner.JoinAsVoter {
		// A voter raises the quorum at once, so those who serve must be there to stay.
		if err := requireOtherVotersServe(ctx, r, "", r.seen.countVoters()+1); err != nil {
			return err
		}
		if err := requireConfirmed(ctx, r); err != nil {
			return err
		}
		add = r.Etcd.AddVoter
	}
	// Last, as another controller may delete the pod meanwhile: without it, the second voter would
	// end the service.
	if err := requireUnusedPod(ctx, r, a); err != nil {
		return err
	}
	if err := add(ctx, r.seen.voters, resources.PeerURL(r.seen.Cluster, a.Name)); err != nil {
		return err
	}
	normal(r, EventMemberAdded, "New member %s added to cluster", a.Name)
	return nil
}

// promoteMember makes a learner a voter, unless its pod is about to end. Before it votes, its pod says that it never
// starts without its data: what it acknowledges from then on must not be forgotten with its disk.
func promoteMember(ctx context.Context, r *run, a planner.PromoteMember) error {
	pod, err := requirePodStays(ctx, r, a.Name)
	if err != nil {
		return err
	}
	if a.Needed {
		if err := requireLearnerApplies(ctx, r, a); err != nil {
			return err
		}
	}
	if pod.MayFill {
		err := updateObservedPod(ctx, r, a.Name, pod.UID, func(live *corev1.Pod) (*corev1.Pod, bool) { return resources.Joined(r.seen.Cluster, live) })
		if err != nil {
			return err
		}
	}
	if err := r.Etcd.Promote(ctx, r.seen.voters, a.ID); err != nil {
		return err
	}
	normal(r, EventMemberPromoted, "Member %s was promoted to voter", a.Name)
	return nil
}

// removeMember takes a member out of etcd. One that is removed because it is lost
// must be seen to be lost in the live API: the cache may be behind.
func removeMember(ctx context.Context, r *run, a planner.RemoveMember) error {
	if a.Reason == planner.RemoveLost {
		if err := requireNoPodOrPVC(ctx, r, a.Name); err != nil {
			return err
		}
	}
	if a.Reason != planner.RemoveLost && r.seen.podOf(a.Name) == nil {
		// A member that was chosen because no pod of it was seen may serve, and lead, all
		// the same.
		if err := requireNoPod(ctx, r, a.Name); err != nil {
			return err
		}
	}
	if err := requireRemovable(ctx, r, a); err != nil {
		return err
	}
	if a.Reason == planner.RemoveOld {
		if err := noteRemoval(ctx, r, a.ID); err != nil {
			return err
		}
	}
	if err := r.Etcd.Remove(ctx, r.seen.voters, a.ID); err != nil && !errors.Is(err, etcd.ErrMemberNotFound) {
		return err
	}
	r.seen.removed(a.ID)
	durable := persistRemoval(ctx, r, a.Name)
	switch a.Reason {
	case planner.RemoveLost:
		warning(r, EventMemberLost, "Member %s lost its pod and its data; another member replaces it", a.Name)
	case planner.RemoveReplaced:
		if pod := r.seen.podOf(a.Name); pod != nil && !pod.Terminating {
			announceReplaced(r, a.Name)
		}
	case planner.RemoveAway:
		warning(r, EventMemberReplaced, "Member %s does not respond and is replaced: %s", a.Name, r.seen.podOf(a.Name).AwayWhy)
	case planner.RemoveCrashLooping:
		warning(r, EventMemberReplaced, "Member %s restarted repeatedly while it joined; another member replaces it", a.Name)
	case planner.RemoveStuck:
		warning(r, EventMemberReplaced, "Member %s did not catch up with the others while it joined; another member replaces it", a.Name)
	case planner.RemoveOld:
		normal(r, EventOldMemberRemoved, "Old member %s of the etcd that this cluster takes over was removed", a.Name)
		return durable
	case planner.RemoveScaleDown, planner.RemoveSurplus, planner.RemovePeersDiffer:
	}
	normal(r, EventMemberRemoved, "Existing member %s removed from the cluster", a.Name)
	return errors.Join(recordRemoved(ctx, r, a.Name), durable)
}

// noteRemoval records the removal of an old member that leaves one voter. That member has no pod and no PVC, so nothing
// else tells that the write which follows must be repeated if it fails, or if the controller ends before it.
func noteRemoval(ctx context.Context, r *run, id uint64) error {
	if voters := slices.DeleteFunc(slices.Clone(r.seen.Etcd.Members), func(m planner.Member) bool { return m.Learner }); len(voters) != 2 {
		return nil
	}
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if name := strconv.FormatUint(id, 16); record.Unwritten != name {
		record.Unwritten = name
		return updateRecord(ctx, r, live, record)
	}
	return nil
}

// writeRemoval has etcd commit the write after the removal of an old member, and forgets the member.
func writeRemoval(ctx context.Context, r *run, _ planner.WriteRemoval) error {
	if err := r.Etcd.ProveWrite(ctx, r.seen.voters); err != nil {
		return fmt.Errorf("have the voters write the removal of old member %s to their disks: %w", r.seen.Record.Unwritten, err)
	}
	live, record, err := readRecord(ctx, r)
	if err != nil || record.Unwritten != r.seen.Record.Unwritten {
		return err
	}
	record.Unwritten = ""
	return updateRecord(ctx, r, live, record)
}

// persistRemoval has the only voter that is left commit a write after the removal of the other one. etcd writes
// to its disk that an entry is committed together with the next entry. A voter that ends before that starts with both
// members, and can never elect a leader without the removed one.
func persistRemoval(ctx context.Context, r *run, removed string) error {
	voters := slices.DeleteFunc(slices.Clone(r.seen.Etcd.Members), func(m planner.Member) bool { return m.Learner })
	if len(voters) != 1 {
		return nil
	}
	left := r.seen.voters
	left.Endpoints = slices.DeleteFunc(slices.Clone(left.Endpoints), func(e etcd.Endpoint) bool { return e.Name == removed })
	if err := r.Etcd.ProveWrite(ctx, left); err != nil {
		return fmt.Errorf("have the last voter write the removal of member %s to its disk: %w", removed, err)
	}
	return nil
}

// removed takes a member out of the observed list, so that the status of this run does not name it. It may
// be the last status before the others are out of reach. With the removed member they would count as a
// lost quorum, although they are a quorum without it.
func (s *seen) removed(id uint64) {
	s.Etcd.Members = slices.DeleteFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == id })
}

// isVoter is true if a member was observed to vote.
func (s *seen) isVoter(id uint64) bool {
	return slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == id && !m.Learner })
}

// requireRemovable looks once more before a member is removed.
func requireRemovable(ctx context.Context, r *run, a planner.RemoveMember) error {
	if a.Reason == planner.RemoveScaleDown || a.Reason == planner.RemoveSurplus || a.Reason == planner.RemoveReplaced || a.Reason == planner.RemoveOld {
		if err := requireSameSpec(ctx, r); err != nil {
			return err
		}
	}
	if a.Reason == planner.RemoveCrashLooping {
		if err := requireNotRunning(ctx, r, a.Name); err != nil {
			return err
		}
	}
	if a.Reason == planner.RemoveAway {
		if err := requireSameSpec(ctx, r); err != nil {
			return err
		}
		if err := requireAway(ctx, r, a.Name); err != nil {
			return err
		}
	}
	if a.Reason == planner.RemoveScaleDown || a.Reason == planner.RemoveReplaced || a.Reason == planner.RemoveAway || a.Reason == planner.RemoveOld || r.seen.isVoter(a.ID) && r.seen.isHealthy(a.Name) {
		return guardVoters(ctx, r, a.Name, r.seen.countVoters()-1)
	}
	// One that cannot come back goes while another pod may be about to end: its successor joins only then. The
	// others must commit without it all the same.
	if r.seen.isVoter(a.ID) {
		return requireOtherVotersCommit(ctx, r, a.Name)
	}
	return nil
}

// requireNotRunning makes sure that the container of a member does not run.
func requireNotRunning(ctx context.Context, r *run, name string) error {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if observedPod(r.seen.Cluster, pod).Running {
		return fmt.Errorf("pod %s runs: %w", name, reconcile.ErrStale)
	}
	return nil
}

// moveLeader transfers the leadership. Only the leader itself accepts the request.
func moveLeader(ctx context.Context, r *run, a planner.MoveLeader) error {
	leader, found := r.seen.endpoint(a.FromName)
	if !found {
		return fmt.Errorf("leader %s has no endpoint: %w", a.FromName, reconcile.ErrStale)
	}
	if err := r.Etcd.MoveLeader(ctx, r.seen.to(leader), a.To); err != nil {
		return err
	}
	normal(r, EventLeaderMoved, "Leadership moved from %s to %s", a.FromName, a.ToName)
	return nil
}

// peers returns the peer URLs of members. Those of old members are in the member list.
func peers(s *seen, names []string) []resources.Peer {
	list := make([]resources.Peer, 0, len(names))
	for _, name := range names {
		if i := slices.IndexFunc(s.Etcd.Members, func(m planner.Member) bool { return m.Unmanaged && m.Name == name }); i >= 0 {
			for _, url := range s.Etcd.Members[i].PeerURLs {
				list = append(list, resources.Peer{Name: name, URL: url})
			}
			continue
		}
		list = append(list, resources.Peer{Name: name, URL: resources.PeerURL(s.Cluster, name)})
	}
	return list
}
