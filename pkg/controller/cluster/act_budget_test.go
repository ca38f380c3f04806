// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestBudgetIsRaisedBeforeAVoterStops: no eviction may be allowed from the moment in which the
// other voters are looked at until the voter has stopped. Here the pod of another voter no longer exists:
// the look fails, and the budget was raised before.
func TestBudgetIsRaisedBeforeAVoterStops(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		size    int32
		budget  v1beta2.PodDisruptionBudgetPolicy
		ready   bool
		owned   bool
		is, now int32
	}{
		{"three voters", 3, "", true, true, 2, 3},
		{"four voters", 4, "", true, true, 3, 4},
		{"five voters", 5, "", true, true, 3, 4},
		{"a cluster that shrinks to one", 1, "", true, true, 2, 3},
		{"it is raised already", 3, "", true, true, 3, 3},
		{"the pod counts as stopped already", 3, "", false, true, 2, 2},
		{"the budget has another owner", 3, "", true, false, 1, 1},
		{"no budget is declared", 3, v1beta2.PodDisruptionBudgetDisabled, true, true, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newDeletedCluster(t)
			l.c.Spec.Replicas, l.c.Spec.PodDisruptionBudget = ptr.To(test.size), test.budget
			budget := resources.PodDisruptionBudget(l.c, int(test.is))
			if !test.owned {
				budget.OwnerReferences, budget.Annotations = nil, nil
			}
			l.kube = fake.NewClientset(budget)
			l.Kubernetes = l.kube
			clock := noon()
			s := &seen{Observed: planner.Observed{Cluster: l.c, Now: clock.Now()}}
			for _, name := range []string{"c-a", "c-b", "c-c"} {
				s.Etcd.Members = append(s.Etcd.Members, planner.Member{Name: name, Started: true, Health: planner.Healthy})
				s.Pods = append(s.Pods, planner.Pod{Name: name, Owned: true, Ready: test.ready})
			}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: l, Recorder: l, Gate: stopped(), Clock: clock}}, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}
			if err := guardVoters(t.Context(), r, "c-a", r.seen.countVoters()); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("a voter may stop beside one whose pod no longer exists: %v", err)
			}
			live, err := l.GetPodDisruptionBudget(t.Context(), "n", "c")
			if err != nil {
				t.Fatal(err)
			}
			if got := int32(minAvailable(live)); got != test.now {
				t.Errorf("the budget keeps %d voters, not %d", got, test.now)
			}
		})
	}
}

// TestOnlyOneStops: of two controllers that have each drained a member, and then look at the other members, at
// most one goes on. The second look is at the pod that stops: the other controller may have given it back.
func TestOnlyOneStops(t *testing.T) {
	t.Parallel()
	l, r := livingCluster(t)
	names := []string{"c-x", "c-y"}
	for _, name := range names {
		pod := resources.Pod(l.c, resources.MemberPod{Name: name})
		pod.UID = types.UID("uid-" + name)
		if _, err := l.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		r.seen.Etcd.Members = append(r.seen.Etcd.Members, planner.Member{Name: name, Started: true, Health: planner.Healthy})
		r.seen.Pods = append(r.seen.Pods, planner.Pod{Name: name, UID: string(pod.UID), Owned: true, Role: planner.PodVoter})
	}
	role := func(name, role string) *corev1.Pod {
		t.Helper()
		pod, err := l.GetPod(t.Context(), "n", name)
		if err != nil {
			t.Fatal(err)
		}
		pod, _ = resources.WithRole(pod, role)
		if pod, err = l.UpdatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	role("c-x", resources.RoleDraining)
	r.seen.Pods[0].Role = planner.PodDraining
	if err := requireOtherVotersStay(t.Context(), r, "c-x", 2); err != nil {
		t.Errorf("no other member is drained: %v", err)
	}
	role("c-y", resources.RoleDraining)
	if err := requireOtherVotersStay(t.Context(), r, "c-x", 2); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("another controller has drained the other member: %v", err)
	}
	if err := requireOtherVotersStay(t.Context(), r, "", 2); err != nil {
		t.Errorf("nothing is to stop: %v", err)
	}
	if err := requireStillDrained(r, role("c-x", resources.RoleDraining)); err != nil {
		t.Errorf("it is drained: %v", err)
	}
	if err := requireStillDrained(r, role("c-x", resources.RoleVoter)); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("another controller has given it back to the Service: %v", err)
	}
}

// TestDeadVoterGoesBesideDrainedOne: a voter that does not serve is removed beside one that was drained before, and that no
// write may give back to its clients. The others must be a quorum without both.
func TestDeadVoterGoesBesideDrainedOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others int
		health planner.Health
		seen   planner.PodRole
		stale  bool
	}{
		"five voters":                          {3, planner.Unhealthy, planner.PodDraining, false},
		"four voters":                          {2, planner.Unhealthy, planner.PodDraining, false},
		"three voters":                         {1, planner.Unhealthy, planner.PodDraining, true},
		"both serve":                           {3, planner.Healthy, planner.PodDraining, true},
		"it was drained since the observation": {3, planner.Unhealthy, planner.PodVoter, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, r := livingCluster(t)
			r.seen.Etcd.Members = []planner.Member{{Name: "c-goes", Started: true, Health: test.health}}
			for i := range test.others + 1 {
				pod := resources.Pod(l.c, resources.MemberPod{Name: fmt.Sprintf("c-%d", i)})
				seen := planner.Pod{Name: pod.Name, Owned: true, Role: planner.PodVoter}
				if i == 0 {
					pod, _ = resources.WithRole(pod, resources.RoleDraining)
					seen.Role = test.seen
				}
				if _, err := l.CreatePod(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				r.seen.Etcd.Members = append(r.seen.Etcd.Members, planner.Member{Name: pod.Name, Started: true, Health: planner.Healthy})
				r.seen.Pods = append(r.seen.Pods, seen)
			}
			err := requireOtherVotersStay(t.Context(), r, "c-goes", r.seen.countVoters()-1)
			if test.stale != errors.Is(err, reconcile.ErrStale) || err != nil && !test.stale {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestRecoveryMemberIsGuarded: from the cutover until it is behind the Services, a budget of its own
// rejects evictions of the recovery member. Another program's budget of that name stays as it is.
func TestRecoveryMemberIsGuarded(t *testing.T) {
	t.Parallel()
	const name = "c.recovery"
	for _, test := range []struct {
		name            string
		policy          v1beta2.PodDisruptionBudgetPolicy
		before          string // whose budget exists
		guarded, unlike bool   // whether it is the budget of the cluster then, and whether putting it fails
		left            bool   // whether one is left when the guard ends
	}{
		{"none exists", "", "", true, false, false},
		{"it exists", "", "ours", true, false, false},
		{"it was edited", "", "edited", true, false, false},
		{"another owner has one", "", "theirs", false, true, true},
		{"no budget is declared", v1beta2.PodDisruptionBudgetDisabled, "", false, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newDeletedCluster(t)
			l.c.Spec.PodDisruptionBudget = test.policy
			budget := resources.RecoveryBudget(l.c)
			switch test.before {
			case "edited":
				budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(0))
			case "theirs":
				budget.OwnerReferences, budget.Annotations = nil, nil
			}
			l.kube = fake.NewClientset()
			if test.before != "" {
				l.kube = fake.NewClientset(budget)
			}
			l.Kubernetes = l.kube
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: l, Recorder: l, Gate: stopped(), Clock: noon()}}, key: types.NamespacedName{Namespace: l.c.Namespace, Name: "c"}, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}
			if err := guardRecoveryMember(t.Context(), r, planner.GuardRecoveryMember{}); errors.Is(err, reconcile.ErrNotOwned) != test.unlike || err != nil && !test.unlike {
				t.Errorf("guarding fails with %v", err)
			}
			live, err := l.GetPodDisruptionBudget(t.Context(), l.c.Namespace, name)
			if guarded := err == nil && resources.Owns(l.c, live) && live.Spec.MinAvailable.IntValue() == 1 && live.Spec.Selector.MatchLabels[resources.LabelRecovery] == "c"; guarded != test.guarded {
				t.Errorf("the budget is %+v, error %v", live, err)
			}
			if err := unguardRecoveryMember(t.Context(), r, planner.UnguardRecoveryMember{}); err != nil {
				t.Errorf("the guard does not end: %v", err)
			}
			if _, err := l.GetPodDisruptionBudget(t.Context(), l.c.Namespace, name); (err == nil) != test.left {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
