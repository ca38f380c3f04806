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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// hiddenSeed is a live API with the seed of a recovery, and the record of how far that is.
type hiddenSeed struct {
	*oneMember
	service *corev1.Service
	// onlyClaim is what the deletion of the claim depends on.
	onlyClaim metav1.Preconditions
}

func (h *hiddenSeed) GetService(context.Context, string, string) (*corev1.Service, error) {
	return h.service.DeepCopy(), nil
}

func (h *hiddenSeed) DeleteClaim(_ context.Context, _, _ string, only metav1.Preconditions) error {
	h.calls = append(h.calls, "delete claim")
	h.onlyClaim = only
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
			h.claim.UID, h.claim.ResourceVersion = "claim-uid", "9"
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
			// Whoever lets clients in, or takes the labels off, writes to it: then it stays.
			if slices.Contains(dropped, "delete pod") && (ptr.Deref(h.only.UID, "") != "pod-uid" || ptr.Deref(h.only.ResourceVersion, "") != "7") {
				t.Errorf("the pod goes only if %+v", h.only)
			}
			if slices.Contains(dropped, "delete claim") && (ptr.Deref(h.onlyClaim.UID, "") != "claim-uid" || ptr.Deref(h.onlyClaim.ResourceVersion, "") != "9") {
				t.Errorf("the claim goes only if %+v", h.onlyClaim)
			}
		})
	}
}

// nursery is a live API in which the seed of a recovery is made.
type nursery struct {
	*hiddenSeed
	made *corev1.Pod
}

func (n *nursery) CreateClaim(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if n.claim != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("persistentvolumeclaims"), c.Name)
	}
	n.calls = append(n.calls, "create claim")
	return c, nil
}

func (n *nursery) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	n.made = pod
	return pod, nil
}

// TestSeedIsFilled: a seed is filled as long as it has not served, and after that only if
// its volume went and the backup is there still; nobody makes one that is not recorded.
func TestSeedIsFilled(t *testing.T) {
	t.Parallel()
	member := v1beta2.RecoverySource{Member: "c-old"}
	backup := v1beta2.RecoverySource{Backup: &v1beta2.BackupPlace{
		StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/etcd"}},
	}}
	const seeding, switching = v1beta2.RecoveryPhaseSeeding, v1beta2.RecoveryPhaseSwitching
	for _, test := range []struct {
		name     string
		phase    v1beta2.RecoveryPhase
		source   v1beta2.RecoverySource
		volume   bool
		recorded v1beta2.RecoveryPhase
		filled   bool
		stale    bool
	}{
		{"from a member", seeding, member, false, seeding, true, false},
		{"from a backup", seeding, backup, false, seeding, true, false},
		{"on the volume of the attempt before", seeding, member, true, seeding, true, false},
		{"it has served from its volume", switching, member, true, switching, false, false},
		{"so it has from a backup", switching, backup, true, switching, false, false},
		{"its volume went", switching, backup, false, switching, true, false},
		{"its volume went, and nobody knows how old the member is by now", switching, member, false, switching, false, false},
		{"another process has gone on", seeding, member, false, switching, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := &nursery{hiddenSeed: &hiddenSeed{oneMember: stopped()}}
			if !test.volume {
				n.claim = nil
			}
			n.record(t, test.recorded, "old")
			r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n, AgentImage: "agent:1"}}
			s := &seen{Observed: planner.Observed{Cluster: n.cluster}, peerService: n.service}
			recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: test.phase, Seed: "c-a", Source: test.source}
			err := r.createReseed(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"}, s, recovery)
			if test.stale {
				if !errors.Is(err, ErrStale) || n.made != nil || slices.Contains(n.calls, "create claim") {
					t.Errorf("it made %v and %q, and answers %v", n.made, n.calls, err)
				}
				return
			}
			if err != nil || n.made == nil {
				t.Fatalf("it made %v and answers %v", n.made, err)
			}
			if filled := len(n.made.Spec.InitContainers) > 0; filled != test.filled || !resources.Hidden(n.made.Labels, "c") {
				t.Errorf("filled %t, labels %v", filled, n.made.Labels)
			}
		})
	}
}
