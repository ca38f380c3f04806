// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// removing is an etcd that responds to a removal with err.
type removing struct {
	*oneMember
	err     error
	written *[]string
}

// ProveWrite notes the members to which a write is sent.
func (e removing) ProveWrite(_ context.Context, target etcd.Target) error {
	for _, endpoint := range target.Endpoints {
		*e.written = append(*e.written, endpoint.Name)
	}
	return nil
}

func (e removing) Remove(context.Context, etcd.Target, uint64) error { return e.err }

// TestStatusNamesNoRemovedMember: the members that stay may be out of reach right after a removal. If
// the last status named the removed member, that member would count as a lost voter of theirs.
func TestStatusNamesNoRemovedMember(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		stays bool
	}{
		"etcd removed it":           {nil, false},
		"etcd had removed it":       {etcd.ErrMemberNotFound, false},
		"etcd rejected the removal": {etcd.ErrNoQuorum, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &notebook{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
			live.pod, live.pvc = nil, nil
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			s.Etcd = planner.Etcd{Linearizable: true, Members: []planner.Member{{ID: 1, Name: "c-a", Started: true}, {ID: 2, Name: "c-b", Started: true}}}
			s.voters.Endpoints = []etcd.Endpoint{{Name: "c-a"}, {Name: "c-b"}}
			var written []string
			r := &Reconciler{Config: Config{Objects: live, Etcd: removing{live.oneMember, test.err, &written}, Gate: live, Recorder: live}}
			err := removeMember(t.Context(), &run{Reconciler: r, seen: s}, planner.RemoveMember{ID: 1, Name: "c-a", Reason: planner.RemoveLost})
			if test.stays != (err != nil) || test.stays && !errors.Is(err, test.err) {
				t.Errorf("the error is %v", err)
			}
			// The last voter must not start with both members after a crash.
			if test.stays != (len(written) == 0) || !test.stays && !slices.Equal(written, []string{"c-b"}) {
				t.Errorf("a write was sent to %v", written)
			}
			named := false
			for _, m := range planner.Status(s.Observed, planner.Plan{}).MemberStatuses {
				named = named || m.Name == "c-a"
			}
			if named != test.stays {
				t.Errorf("the status names the member: %v", named)
			}
			if recorded := live.written != nil && slices.Contains(resources.ParseRecord(live.written).Removed, "c-a"); recorded == test.stays {
				t.Errorf("the record says that it was removed: %v", recorded)
			}
		})
	}
}

// takenOver is an etcd from which an old member is removed. It notes what is requested.
type takenOver struct {
	*oneMember
	after error // what a write after the removal returns
	calls []string
}

func (e *takenOver) Remove(context.Context, etcd.Target, uint64) error {
	e.calls = append(e.calls, "remove")
	return nil
}

func (e *takenOver) ProveWrite(_ context.Context, target etcd.Target) error {
	call := "write"
	for _, endpoint := range target.Endpoints {
		call += " " + endpoint.Name
	}
	e.calls = append(e.calls, call)
	if slices.Contains(e.calls, "remove") {
		return e.after
	}
	return nil
}

func (e *takenOver) FailedReads(context.Context, etcd.Target) map[string]error { return nil }

// ownPods has a pod for each member of the cluster, and none for an old member.
type ownPods struct{ *notebook }

func (o ownPods) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if name == "x" {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return resources.Pod(o.cluster, resources.MemberPod{Name: name}), nil
}

// TestRemovalOfOldMemberIsPersisted: when the last old member is removed beside one member of the cluster, that member
// commits a write after it. If it ended before, it would start with the old member, and elect no leader without it.
func TestRemovalOfOldMemberIsPersisted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others []string
		after  error
		want   []string
	}{
		"one member is left":               {[]string{"c-b"}, nil, []string{"write c-b x", "remove", "write c-b"}},
		"one is left and commits no write": {[]string{"c-b"}, etcd.ErrTimeout, []string{"write c-b x", "remove", "write c-b"}},
		"two members are left":             {[]string{"c-b", "c-d"}, nil, []string{"write c-b c-d x", "remove"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &notebook{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			for i, member := range append(slices.Clone(test.others), "x") {
				s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: uint64(i + 1), Name: member, Started: true, Health: planner.Healthy, Unmanaged: member == "x"})
				s.voters.Endpoints = append(s.voters.Endpoints, etcd.Endpoint{Name: member})
			}
			s.Etcd.Linearizable = true
			e := &takenOver{oneMember: live.oneMember, after: test.after}
			r := &Reconciler{Config: Config{Objects: ownPods{live}, Etcd: e, Gate: live, Recorder: live}}
			old := s.Etcd.Members[len(s.Etcd.Members)-1]
			err := removeMember(t.Context(), &run{Reconciler: r, seen: s}, planner.RemoveMember{ID: old.ID, Name: old.Name, Reason: planner.RemoveOld})
			if !errors.Is(err, test.after) || test.after == nil && err != nil {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(e.calls, test.want) {
				t.Errorf("requests %q, want %q", e.calls, test.want)
			}
			if len(test.others) > 1 {
				return
			}
			s.Record.Record = resources.ParseRecord(live.written)
			if s.Record.Unwritten != "2" {
				t.Errorf("the record does not say that a write is due: %v", live.written.Data)
			}
			live.kept = live.written
			err = writeRemoval(t.Context(), &run{Reconciler: r, seen: s}, planner.WriteRemoval{})
			if due := resources.ParseRecord(live.written).Unwritten != ""; !errors.Is(err, test.after) || due != (test.after != nil) {
				t.Errorf("a write is due: %t, after %v", due, err)
			}
		})
	}
}

// promoting notes the promotion among the calls.
type promoting struct{ *oneMember }

func (e promoting) Promote(context.Context, etcd.Target, uint64) error {
	e.calls = append(e.calls, "promote")
	return nil
}

// TestVoterNeverStartsWithoutItsData: what a new voter acknowledges right after its promotion is on its disk. Without that
// disk it must not start, so its pod says so before it votes.
func TestVoterNeverStartsWithoutItsData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		joined bool
		want   []string
	}{
		"its pod names the others": {false, []string{"update pod", "promote"}},
		"its pod names it alone":   {true, []string{"promote"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := stopped()
			uid := m.pod.UID
			m.pod = resources.Pod(m.cluster, resources.MemberPod{Name: "c-a", Learner: true, Joined: test.joined, InitialCluster: []resources.Peer{
				{Name: "c-a", URL: resources.PeerURL(m.cluster, "c-a")}, {Name: "c-b", URL: resources.PeerURL(m.cluster, "c-b")},
			}})
			m.pod.UID = uid
			r := &Reconciler{Config: Config{Objects: m, Etcd: promoting{m}, Gate: m, Recorder: m}}
			err := promoteMember(t.Context(), &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: m.cluster}}}, planner.PromoteMember{ID: 1, Name: "c-a"})
			wrote := slices.DeleteFunc(m.calls, func(call string) bool { return call == "get pod" })
			if err != nil || !slices.Equal(wrote, test.want) {
				t.Errorf("it fails with %v and does %q, want %q", err, wrote, test.want)
			}
		})
	}
}
