// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

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
