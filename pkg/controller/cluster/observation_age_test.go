// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/background"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// promotesInTime is an etcd that promotes a member at once, unless the request is out of time.
type promotesInTime struct{ *guarded }

func (p promotesInTime) Promote(ctx context.Context, _ etcd.Target, _ uint64) error { return ctx.Err() }

// TestObservationGrowsOldWhileTheClockIsSetBack: an observation is acted on for ten seconds at most, also if the
// clock shows that no time has passed.
func TestObservationGrowsOldWhileTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for passes, want := range map[time.Duration]error{observationLife - time.Second: nil, observationLife + time.Second: context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			g := promotesInTime{&guarded{oneMember: stopped()}}
			r := newReconciler(Config{
				Cache: g, Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: noon(), Background: background.New(share.Divided, func(types.NamespacedName) {}),
				Suffix: func() string { return "x" }, Responsible: func(*v1beta2.EtcdCluster) bool { return true },
				Decide: func(planner.Observed) planner.Plan {
					<-time.After(passes) // of the bubble's clock
					return planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1, Name: "c-a"}}}
				},
			})
			_, err := r.Reconcile(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"})
			if !errors.Is(err, want) {
				t.Errorf("after %v: error %v, want %v", passes, err, want)
			}
		})
	}
}
