// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func TestScopesOverlap(t *testing.T) {
	t.Parallel()
	all, a, b, wide := scope{kind: scopeAll}, scope{scopeNamespace, "a"}, scope{scopeNamespace, "b"}, scope{kind: scopeClusterWide}
	for _, test := range []struct {
		one, other scope
		want       bool
	}{
		{all, all, true}, {all, a, true}, {all, wide, true}, {a, a, true}, {wide, wide, true}, {a, b, false}, {a, wide, false},
	} {
		if test.one.overlaps(test.other) != test.want || test.other.overlaps(test.one) != test.want {
			t.Errorf("%s and %s: overlap is not %t", test.one, test.other, test.want)
		}
		// Scopes that overlap must not share a cluster's lease by accident, nor others a lease.
		if same := test.one.leaseName() == test.other.leaseName(); same != (test.one == test.other) {
			t.Errorf("%s and %s: the same lease %t", test.one, test.other, same)
		}
		for _, marked := range []bool{false, true} {
			for _, namespace := range []string{"a", "b", "c"} {
				object := &metav1.ObjectMeta{Namespace: namespace}
				if marked {
					object.Annotations = map[string]string{ScopeAnnotation: ScopeClusterWide}
				}
				if test.one.includes(object) && test.other.includes(object) && !test.want {
					t.Errorf("%s and %s: both include a cluster of %s, marked %t", test.one, test.other, namespace, marked)
				}
			}
		}
	}
}

func lease(namespace, name, holder string, s scope, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: s.labels()},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](10), RenewTime: ptr.To(metav1.NewMicroTime(renewed)),
		},
	}
}

// TestRivals: which leases of others keep a controller of all clusters from acting.
func TestRivals(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	all, namespaced := scope{kind: scopeAll}, scope{scopeNamespace, "x"}
	unlabelled := lease("n", "foreign", "other", scope{}, now)
	unlabelled.Labels = nil
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		rival bool
	}{
		"a namespace of it":                {lease("n", "l", "other", namespaced, now), true},
		"in a namespace of a known name":   {lease(defaultNamespace, "l", "other", all, now), false},
		"a forged lease, elsewhere":        {lease("elsewhere", "l", "other", all, now), false},
		"of a third namespace, elsewhere":  {lease("elsewhere", "l", "other", namespaced, now), false},
		"all clusters, by another lease":   {lease("n", "l", "other", all, now), true},
		"the same shard":                   {lease("n", "lease", "other", all, now), false},
		"the same lease for another scope": {lease("n", "lease", "other", namespaced, now), true},
		"a lease that was released":        {lease("elsewhere", "l", "", namespaced, now), false},
		"its own":                          {lease("elsewhere", "l", "me", all, now), false},
		"no lease of a controller":         {unlabelled, false},
	} {
		r := newRivals(electing("me"), fake.NewClientset(test.lease), testingclock.NewFakeClock(now))
		if err := r.confirmNone(t.Context()); errors.Is(err, ErrScopesOverlap) != test.rival {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLeasesElsewhere: a lease gives away the clusters of its own namespace for as long as it is alive, and nothing else.
func TestLeasesElsewhere(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	fakeClock := testingclock.NewFakeClock(now)
	forged := lease("b", "forged", "mallory", scope{kind: scopeAll}, now)
	forged.Spec.LeaseDurationSeconds = ptr.To[int32](math.MaxInt32)
	o := electing("me")
	forbidden := false
	kube := fake.NewClientset(lease("a", "l", "other", scope{scopeNamespace, "a"}, now), forged, lease("c", "l", "mallory", scope{scopeNamespace, "d"}, now))
	r := newRivals(o, kube, fakeClock)
	if held, err := r.check(t.Context()); err != nil || held != nil || len(r.beyond) != 2 {
		t.Fatalf("a lease elsewhere is waited for, or is not counted: %v %v %v", held, err, r.beyond)
	}
	kube.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		return forbidden && action.GetNamespace() == "", nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil)
	})
	forbidden = true
	if _, err := r.check(t.Context()); err != nil || o.IsResponsible(&metav1.ObjectMeta{Namespace: "a"}) {
		t.Errorf("a right that was lost gives the clusters of another controller away: %v", err)
	}
	forbidden = false
	for _, step := range []struct {
		after time.Duration
		gone  bool
	}{{0, true}, {10 * time.Second, true}, {time.Second, false}} {
		fakeClock.Step(step.after)
		if held, err := r.check(t.Context()); err != nil || held != nil {
			t.Fatalf("a lease elsewhere is waited for: %v %v", held, err)
		}
		for namespace, mine := range map[string]bool{"a": !step.gone, "b": true, "c": true, "d": true} {
			if o.IsResponsible(&metav1.ObjectMeta{Namespace: namespace}) != mine {
				t.Errorf("after %v: responsible for namespace %s: %t", fakeClock.Since(now), namespace, !mine)
			}
		}
		if !o.IsResponsible(&metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{ScopeAnnotation: ScopeClusterWide}}) {
			t.Error("a lease for a namespace takes a cluster that is marked as clusterwide")
		}
	}
}

// TestLiveRivalIsRejected: a lease that is renewed is alive, whatever the clocks of
// other machines say, and one that is not expires.
func TestLiveRivalIsRejected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		renews bool
		want   error
	}{"it renews": {true, ErrScopesOverlap}, "it was killed": {false, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Its clock is wrong by a year.
			theirs := lease("n", "etcd-operator", "other", scope{kind: scopeClusterWide}, time.Unix(1000, 0).AddDate(-1, 0, 0))
			kube, fakeClock := fake.NewClientset(theirs), testingclock.NewFakeClock(time.Unix(1000, 0))
			r := newRivals(electing("me"), kube, fakeClock)
			result := make(chan error, 1)
			go func() { result <- r.await(t.Context()) }()
			waited := time.Duration(0)
			for {
				var err error
				select {
				case err = <-result:
				default:
					if fakeClock.HasWaiters() {
						if test.renews {
							theirs.Spec.RenewTime = ptr.To(metav1.NewMicroTime(theirs.Spec.RenewTime.Add(time.Second)))
							if _, err := kube.CoordinationV1().Leases("n").Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
								t.Fatal(err)
							}
						}
						waited += r.o.RetryPeriod
						fakeClock.Step(r.o.RetryPeriod)
					}
					runtime.Gosched()
					continue
				}
				if !errors.Is(err, test.want) || test.want == nil && (err != nil || waited < 10*time.Second) {
					t.Errorf("after %v: %v", waited, err)
				}
				if test.renews && !strings.Contains(err.Error(), "other looks after the clusters that are marked as clusterwide (--cluster-wide) (lease n/etcd-operator)") {
					t.Errorf("it does not say which controller is in the way: %v", err)
				}
				return
			}
		})
	}
}

// TestTwoThatStartTogether: of two controllers with overlapping scopes at most one ever acts,
// however they start.
func TestTwoThatStartTogether(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	acting := make(chan string, 2)
	work := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			acting <- name
			<-ctx.Done()
			return nil
		}
	}
	one, other := electing("one"), electing("other")
	other.LeaseName, other.Namespace = "lease-of-other", "x"
	quitOne, oneEnds := leading(t, one, kube, work("one"))
	quitOther, otherEnds := leading(t, other, kube, work("other"))
	var rejected int
	var left chan error
	for rejected == 0 {
		select {
		case err := <-oneEnds:
			left = otherEnds
			if rejected++; !errors.Is(err, ErrScopesOverlap) {
				t.Fatalf("the first ended: %v", err)
			}
		case err := <-otherEnds:
			left = oneEnds
			if rejected++; !errors.Is(err, ErrScopesOverlap) {
				t.Fatalf("the second ended: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("both go on")
		}
	}
	quitOne()
	quitOther()
	if err := await(t, "the end of the other one", left); err != nil && !errors.Is(err, ErrScopesOverlap) {
		t.Error(err)
	}
	if len(acting) > 1 {
		t.Error("both have acted")
	}
}

// looks counts how often a lease was read by its name.
func looks(kube *fake.Clientset) int {
	n := 0
	for _, action := range kube.Actions() {
		if action.Matches("get", "leases") {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	over := time.After(patience)
	for !f() {
		select {
		case <-over:
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestTakeOver: another process acts soon after the process before it was stopped, and when
// the lease of a killed process has expired.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		killed bool
		within time.Duration
	}{"planned": {false, 5 * time.Second}, "killed": {true, 15 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defaults := NewOptions()
			options := func(identity string) *Options {
				o := electing(identity)
				o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = defaults.LeaseDuration, defaults.RenewDeadline, defaults.RetryPeriod
				return o
			}
			kube := fake.NewClientset()
			act := func(begun chan<- struct{}) func(context.Context) error {
				return func(ctx context.Context) error {
					close(begun)
					<-ctx.Done()
					return nil
				}
			}
			before, after := make(chan struct{}), make(chan struct{})
			quit := func() {}
			if test.killed { // it has renewed right before
				held := lease("n", "lease", "before", scope{kind: scopeAll}, time.Now())
				held.Spec.LeaseDurationSeconds = ptr.To(int32(defaults.LeaseDuration.Seconds()))
				if _, err := kube.CoordinationV1().Leases("n").Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				quit, _ = leading(t, options("before"), kube, act(before))
				await(t, "the first one acts", before)
			}
			_, _ = leading(t, options("after"), kube, act(after))
			if !test.killed {
				eventually(t, "the second one looks at the lease", func() bool { return looks(kube) > 1 })
			}
			from := clock.RealClock{}.Now()
			quit()
			await(t, "the second one acts", after)
			took := time.Since(from)
			t.Logf("it took over after %v", took.Round(10*time.Millisecond))
			if took > test.within {
				t.Errorf("it took %v, more than %v", took, test.within)
			}
		})
	}
}
