// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// unlisted has a pod that no list by labels shows.
type unlisted struct{ *oneMember }

func (unlisted) ListPods(context.Context, string, string) ([]corev1.Pod, error) { return nil, nil }

// TestTrustOfPodWithoutLabels: a pod that has lost its labels may not trust the present CA, so a
// certificate that its member accepts stays.
func TestTrustOfPodWithoutLabels(t *testing.T) {
	t.Parallel()
	for _, exists := range []bool{true, false} {
		live := unlisted{stopped()}
		if !exists {
			live.pod = nil
		} else {
			live.pod.Annotations[resources.AnnotationTrust] = "before"
		}
		ca, err := certificates.NewCA("c", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s := &seen{signer: &signer{ca: ca}, Observed: planner.Observed{
			Cluster: live.cluster, Trust: "now", CA: &certplanner.CA{}, Record: planner.Record{Record: resources.Record{ClusterID: "1"}},
			Etcd: planner.Etcd{Members: []planner.Member{{Name: "c-a"}, {Name: "x", Unmanaged: true}, {}}},
		}}
		err = requireTrusted(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: s})
		if errors.Is(err, reconcile.ErrStale) != exists || (err == nil) == exists {
			t.Errorf("the pod exists %t: %v", exists, err)
		}
	}
}

// TestOutdatedCacheSignsNothing: a cache from before a cluster had pods shows one that has never served. Its members
// may accept nothing that the present CA signs.
func TestOutdatedCacheSignsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		observed []planner.Pod
		stale    bool
	}{
		"no pod was observed": {nil, true},
		"it was observed":     {[]planner.Pod{{Name: "c-a", UID: "pod-uid", Owned: true}}, false},
	} {
		live := &hiddenRecoveryMember{oneMember: stopped()}
		s := &seen{Observed: planner.Observed{Cluster: live.cluster, CA: &certplanner.CA{}, Pods: test.observed}}
		for _, change := range []certplanner.Change{certplanner.ChangeAll, certplanner.ChangeLost} {
			err := requireAccepting(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: s}, change)
			if errors.Is(err, reconcile.ErrStale) != test.stale || (err == nil) == test.stale {
				t.Errorf("%s, %v: %v", name, change, err)
			}
		}
	}
}
