// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// membersAway are members. Some of them respond.
type membersAway struct {
	Objects
	Etcd
	responds []string
	denies   string
}

// ListPods implements Objects.
func (*membersAway) ListPods(context.Context, string, string) ([]corev1.Pod, error) { return nil, nil }

// Statuses implements Etcd.
func (a *membersAway) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	all := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		all[e.Name] = etcd.StatusResult{Err: etcd.ErrUnavailable}
		if e.Name == a.denies {
			all[e.Name] = etcd.StatusResult{Err: etcd.ErrDenied}
		}
		if slices.Contains(a.responds, e.Name) {
			all[e.Name] = etcd.StatusResult{}
		}
	}
	return all
}

// TestNoneRespondsBeforeTheCutover: a restore without a pre-restore backup asks every old member again.
func TestNoneRespondsBeforeTheCutover(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members, responds []string
		denies            string
		want              error
	}{
		"no pod is left":             {},
		"no member responds":         {members: []string{"c-a", "c-b"}},
		"one member responds":        {members: []string{"c-a", "c-b"}, responds: []string{"c-b"}, want: reconcile.ErrStale},
		"one rejects the controller": {members: []string{"c-a", "c-b"}, denies: "c-b", want: reconcile.ErrStale},
	} {
		a := &membersAway{responds: test.responds, denies: test.denies}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: a, Etcd: a}}, seen: &seen{Observed: planner.Observed{Cluster: &v1beta2.EtcdCluster{}}}}
		for _, member := range test.members {
			r.seen.target.Endpoints = append(r.seen.target.Endpoints, etcd.Endpoint{Name: member})
		}
		if err := requireNoneResponds(t.Context(), r); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
	}
}

// returnedQuorum is a cluster whose old members follow a leader. They are a quorum or not.
type returnedQuorum struct {
	*hiddenRecoveryMember
	serves   bool
	recorded bool
}

func (*returnedQuorum) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	all := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		all[e.Name] = etcd.StatusResult{Health: etcd.MemberHealth{Leader: 1}}
	}
	return all
}

func (q *returnedQuorum) Members(context.Context, etcd.Target) (etcd.Membership, error) {
	if q.serves {
		return etcd.Membership{}, nil
	}
	return etcd.Membership{}, etcd.ErrUnavailable
}

func (q *returnedQuorum) UpdateConfigMap(_ context.Context, c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	q.recorded = true
	return c, nil
}

// TestRepeatedRestoreAsksForAQuorum: a restore that the cluster has carried out before replaces only what a lost quorum
// has left. Directly before the cutover the controller asks the members, because the observation that proved the loss may be old.
func TestRepeatedRestoreAsksForAQuorum(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		repeats, serves bool
		want            error
	}{
		"the quorum is lost":                     {repeats: true},
		"the quorum has come back":               {repeats: true, serves: true, want: reconcile.ErrStale},
		"the first restore replaces what serves": {serves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &returnedQuorum{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}, serves: test.serves}
			live.record(t, v1beta2.RecoveryPhaseFilling, "old")
			s := live.observed()
			s.Cluster.Status.Restores = []v1beta2.ClusterRestore{{Name: "r", UID: "r", Request: "same"}}
			if test.repeats {
				s.Cluster.Status.Restores = append(s.Cluster.Status.Restores, v1beta2.ClusterRestore{Name: "r", UID: "earlier", Request: "same", Time: &metav1.Time{}})
			}
			s.target.Endpoints = []etcd.Endpoint{{Name: "c-a"}, {Name: "c-b"}}
			next := *resources.ParseRecord(live.kept).Recovery
			next.Phase, next.Trigger = v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryTriggerRestore
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Etcd: live, Gate: live, Recorder: live}}, seen: s}
			err := recordRecovery(t.Context(), r, planner.RecordRecovery{Recovery: next})
			if !errors.Is(err, test.want) || live.recorded == (test.want != nil) {
				t.Errorf("error %v, want %v; the cutover was recorded: %t", err, test.want, live.recorded)
			}
		})
	}
}

// TestAutomaticRestoreNamesItsCluster: the planner of restores knows by the UID that no user asked for the restore, and
// which loss it is for.
func TestAutomaticRestoreNamesItsCluster(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "uid"}}
	made := automaticRestore(c, planner.RequestRestore{Name: "c-first-aid", Backup: "nightly", Revision: 7})
	if made.Annotations[v1beta2.AnnotationAutomaticRestore] != "uid" || made.Name != "c-first-aid" || made.Namespace != "ns" ||
		made.Spec.Backup.Name != "nightly" || *made.Spec.Backup.Revision != 7 || made.Spec.EtcdCluster.Name != "c" {
		t.Errorf("created %+v", made)
	}
}

// proofs notes which write was requested.
type proofs struct {
	Etcd
	asked string
}

func (p *proofs) ProveWrite(context.Context, etcd.Target) error {
	p.asked = "write"
	return nil
}

func (p *proofs) ProveFirstWrite(context.Context, etcd.Target) error {
	p.asked = "first write"
	return nil
}

// TestRecoveryMemberDropsInheritedAlarms: only a member that continues from a snapshot has alarms of other clusters.
func TestRecoveryMemberDropsInheritedAlarms(t *testing.T) {
	t.Parallel()
	for of, want := range map[planner.WriteTarget]string{planner.WriteToRecoveryMember: "first write", planner.WriteToCluster: "write"} {
		p := &proofs{}
		if err := proveWrite(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Etcd: p}}, seen: &seen{}}, planner.VerifyWrite{Of: of}); err != nil || p.asked != want {
			t.Errorf("%v: requested the %s, want the %s, error %v", of, p.asked, want, err)
		}
	}
}
