// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfIdentity are mistakes with members and clusters that are not the controller's.
func bugsOfIdentity() []bug {
	return []bug{
		{name: "reports nothing while the API rejects a field", rules: "L1 L2", story: unmanagedMembers, wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return allOrNothing{c.Objects} })},
		{name: "changes the membership while another program does", rules: "S3 S2", story: unmanagedMembers, wrap: deciding(overlookUnmanaged)},
		{name: "takes what responds at the address of a member for that member", rules: "S5 S2", story: otherClusters, wrap: func(_ *manager.Manager, c cluster.Config) cluster.Config {
			c.Etcd = indifferent{c.Etcd}
			return c
		}},
	}
}

// unmanagedMembers is a story in which persons add members with etcdctl.
func unmanagedMembers(s *schedules.Schedule) { identityStory(s, schedules.EventUnmanagedMember) }

// otherClusters is a story in which addresses of pods lead to another cluster.
func otherClusters(s *schedules.Schedule) { identityStory(s, schedules.EventOtherCluster) }

// recordLostElsewhere is otherClusters where the addresses of all pods lead elsewhere for a while, and the record is lost
// meanwhile. The members then have to prove which cluster is theirs.
func recordLostElsewhere(s *schedules.Schedule) {
	otherClusters(s)
	for i := range 4 {
		at := 90*time.Second + time.Duration(i)*80*time.Second
		for pod := range 5 {
			s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventOtherCluster, A: pod, For: 20 * time.Second})
		}
		s.Events = append(s.Events, schedules.Event{At: at + 5*time.Second, Kind: schedules.EventLoseRecord, A: faults.DeleteRecord})
	}
}

// identityStory is a cluster without TLS, which loses members and changes its size.
func identityStory(s *schedules.Schedule, kind schedules.EventKind) {
	s.Certificates, s.Recovers, s.Deadly, s.Version = false, false, false, schedules.VersionLines[0][0]
	s.Size = max(s.Size, 3)
	s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool {
		return !slices.Contains([]schedules.EventKind{
			schedules.EventCall, schedules.EventFreeze, schedules.EventKillController, schedules.EventKillContainer, schedules.EventDeletePod,
			schedules.EventForceDeletePod, schedules.EventScale, schedules.EventHideMember, schedules.EventDeclare, schedules.EventRestart,
		}, e.Kind)
	})
	for i := range 8 {
		at := time.Minute + time.Duration(i)*40*time.Second
		s.Events = append(s.Events,
			schedules.Event{At: at, Kind: kind, A: int(s.Seed) + i, B: int(s.Seed) + i, For: time.Duration(20+5*i) * time.Second},
			schedules.Event{At: at + time.Second, Kind: schedules.EventScale, A: 2 + (int(s.Seed)+i)%3},
			schedules.Event{At: at + 10*time.Second, Kind: schedules.EventForceDeletePod, A: int(s.Seed) + 3*i},
		)
	}
}

// allOrNothing is a writer to whose API a member without a name of its own is not acceptable.
type allOrNothing struct{ cluster.Objects }

var errNoUnmanaged = errors.New("a member has no name")

// UpdateClusterStatus implements cluster.Objects.
func (o allOrNothing) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	if slices.ContainsFunc(c.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged }) {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters"), c.Name, errNoUnmanaged)
	}
	return o.Objects.UpdateClusterStatus(ctx, c)
}

func overlookUnmanaged(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Members = slices.DeleteFunc(slices.Clone(o.Etcd.Members), func(m planner.Member) bool { return m.Unmanaged })
	return decide(o)
}

// indifferent never says which cluster it means.
type indifferent struct{ cluster.Etcd }

func anyOf(target etcd.Target) etcd.Target {
	target.ClusterIDs = nil
	return target
}

// Statuses implements cluster.Etcd.
func (e indifferent) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	return e.Etcd.Statuses(ctx, anyOf(target))
}

// AddLearner implements cluster.Etcd.
func (e indifferent) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return e.Etcd.AddLearner(ctx, anyOf(target), peerURL)
}

// Promote implements cluster.Etcd.
func (e indifferent) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	return e.Etcd.Promote(ctx, anyOf(target), id)
}

// Remove implements cluster.Etcd.
func (e indifferent) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return e.Etcd.Remove(ctx, anyOf(target), id)
}

// ProveWrite implements cluster.Etcd.
func (e indifferent) ProveWrite(ctx context.Context, target etcd.Target) error {
	return e.Etcd.ProveWrite(ctx, anyOf(target))
}

// withheldLists are members; those of another cluster never return their member list in time.
type withheldLists struct{ cluster.Etcd }

// OwnMembers implements cluster.Etcd.
func (l withheldLists) OwnMembers(ctx context.Context, target etcd.Target, e etcd.Endpoint) (etcd.Membership, error) {
	own, err := l.Etcd.OwnMembers(ctx, target, e)
	if err == nil && !slices.ContainsFunc(own.Members, func(m etcd.Member) bool { return m.Name == e.Name }) {
		return etcd.Membership{}, &etcd.Error{Op: "list own members", Member: e.Name, Kind: etcd.ErrTimeout}
	}
	return own, err
}

// TestIdentitySchedules plays schedules with members that other programs add, and with addresses that lead to
// another cluster.
func TestIdentitySchedules(t *testing.T) {
	n := max(10, *scheduleCount/10)
	for _, variant := range []Variant{
		{Name: "members of other programs", story: unmanagedMembers},
		{Name: "another cluster at an address", story: otherClusters},
		{Name: "another cluster at an address, and no record", story: recordLostElsewhere},
		{Name: "another cluster that gives no list away at an address, and no record", story: recordLostElsewhere, wrap: func(_ *manager.Manager, c cluster.Config) cluster.Config {
			c.Etcd = withheldLists{c.Etcd}
			return c
		}},
	} {
		t.Run(variant.Name, func(t *testing.T) {
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			for _, r := range failed[:min(len(failed), 3)] {
				report(t, r, variant)
			}
		})
	}
}
