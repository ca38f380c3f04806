// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// hiddenSeed is a live API with the seed of a recovery, and the record of how far that is.
type hiddenSeed struct {
	*oneMember
	service *corev1.Service
}

func (h *hiddenSeed) GetService(context.Context, string, string) (*corev1.Service, error) {
	return h.service.DeepCopy(), nil
}

func (h *hiddenSeed) DeleteClaim(_ context.Context, _, _ string, _ metav1.Preconditions) error {
	h.calls = append(h.calls, "delete claim")
	return nil
}

// record writes how far the recovery is.
func (h *hiddenSeed) record(t *testing.T, phase v1beta2.RecoveryPhase, clusterID string) {
	t.Helper()
	text, err := json.Marshal(&v1beta2.RecoveryStatus{ID: "r", Phase: phase, Seed: "c-a"})
	if err != nil {
		t.Fatal(err)
	}
	h.service = resources.PeerService(h.cluster, "c-old")
	h.service.Annotations[resources.AnnotationRecovery] = string(text)
	h.service.Annotations[resources.AnnotationClusterID] = clusterID
}

// TestDropSeed: the seed of a recovery goes only while it is nothing but a copy. Another
// process may have let the data go on in it since the cluster was observed.
func TestDropSeed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		since func(*testing.T, *hiddenSeed)
		drops []string
		stale bool
	}{
		{"it is a copy", func(*testing.T, *hiddenSeed) {}, []string{"delete pod", "delete claim"}, false},
		{"its pod is gone", func(_ *testing.T, h *hiddenSeed) { h.pod = nil }, []string{"delete claim"}, false},
		{"the old members go out of service", func(t *testing.T, h *hiddenSeed) {
			t.Helper()
			h.record(t, v1beta2.RecoveryPhaseSwitching, "old")
		}, nil, true},
		{"they are out of service", func(t *testing.T, h *hiddenSeed) {
			t.Helper()
			h.record(t, v1beta2.RecoveryPhaseCleaning, "new")
		}, nil, true},
		{"clients were let in", func(_ *testing.T, h *hiddenSeed) {
			resources.Revealed(&h.pod.Labels, "c")
			resources.Revealed(&h.claim.Labels, "c")
		}, nil, false},
		{"it belongs to another cluster", func(_ *testing.T, h *hiddenSeed) {
			h.pod.OwnerReferences[0].UID, h.claim.OwnerReferences[0].UID = "other", "other"
		}, nil, false},
		{"the service belongs to another cluster", func(_ *testing.T, h *hiddenSeed) { h.service.OwnerReferences[0].UID = "other" }, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenSeed{oneMember: stopped()}
			h.claim = resources.ReseedClaim(h.cluster, "c-a")
			h.pod.Labels = h.claim.Labels
			h.record(t, v1beta2.RecoveryPhaseSeeding, "old")
			s := &seen{Observed: planner.Observed{Cluster: h.cluster}, peerService: h.service}
			test.since(t, h)
			err := (&Reconciler{Config: Config{Objects: h, Etcd: h, Gate: h, Recorder: h}}).dropSeed(t.Context(), s, "c-a")
			if test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
			}
			dropped := slices.DeleteFunc(h.calls, func(call string) bool { return call != "delete pod" && call != "delete claim" })
			if !slices.Equal(dropped, test.drops) {
				t.Errorf("it did %q, want %q", dropped, test.drops)
			}
		})
	}
}
