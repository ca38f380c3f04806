// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// dateWrites dates each write of the Secret as the kube-apiserver does, by the clock of the bench.
func (b *bench) dateWrites() {
	last := b.clock.Now()
	for _, verb := range []string{"create", "update"} {
		b.kube.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			b.writes, last = b.writes+1, b.clock.Now()
			return false, nil, nil
		})
	}
	b.kube.PrependReactor("get", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := b.kube.Tracker().Get(action.GetResource(), action.GetNamespace(), "tls")
		if err != nil {
			return true, nil, err
		}
		secret, is := object.(*corev1.Secret)
		if !is {
			return false, nil, nil
		}
		secret = secret.DeepCopy()
		secret.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: last}}}
		return true, secret, nil
	})
}

// TestTwoClocks runs two replicas whose clocks differ. The clock of the kube-apiserver, which verifies, is right.
func TestTwoClocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// first and second say how far the clocks of the replicas are ahead.
		first, second time.Duration
		// atMost is how often both write in an hour.
		atMost int
	}{
		{"a replica that is six minutes ahead starts first", 6 * time.Minute, 0, 1},
		{"a replica that is a day ahead starts first", day, 0, 1},
		{"a replica that is three days ahead starts first", 3 * day, 0, 4},
		{"a replica that is three days ahead starts later", 0, 3 * day, 1},
		{"a replica that is three days behind starts first", -3 * day, 0, 1},
		{"a replica that is three days behind starts later", 0, -3 * day, 1},
		{"a replica without a clock starts first", -50 * 365 * day, 0, 2},
		{"a replica without a clock starts later", 0, -50 * 365 * day, 1},
		{"a replica that is ahead by more than the leaf is valid", 0, 100 * day, 14},
		{"one is two days behind and one is two days ahead", -2 * day, 2 * day, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			var replicas []*Manager
			var clocks []*clocktesting.FakeClock
			for _, ahead := range []time.Duration{test.first, test.second} {
				m := b.manager()
				clock := clocktesting.NewFakeClock(b.clock.Now().Add(ahead))
				m.clock = clock
				replicas, clocks = append(replicas, m), append(clocks, clock)
			}
			for range int(time.Hour / syncPeriod) {
				for _, m := range replicas {
					if err := m.Sync(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				b.clock.Step(syncPeriod)
				for _, clock := range clocks {
					clock.Step(syncPeriod)
				}
			}
			if b.writes > test.atMost {
				t.Errorf("%d writes in an hour, want at most %d", b.writes, test.atMost)
			}
			for _, m := range replicas {
				if err := m.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.checkTrusted(t, replicas[0])
		})
	}
}
