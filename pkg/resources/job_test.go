// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestBackupOnAPVCRunsBesideTheRecoveryPod, which has the PVC mounted until the cutover. Elsewhere a PVC with the mode
// ReadWriteOnce cannot be mounted, and the recovery may wait for the backup.
func TestBackupOnAPVCRunsBesideTheRecoveryPod(t *testing.T) {
	t.Parallel()
	c := lostCluster(true)
	recoveryPod, err := RecoveryPod(c, recovery(func(*v1beta2.RecoveryStatus) {}), MemberPod{}, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	member := Pod(c, MemberPod{Name: "c-old"})
	own := &corev1.Affinity{
		NodeAffinity: jobPolicy().Affinity.NodeAffinity,
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}}},
		}}},
	}
	for name, test := range map[string]struct {
		spec     func(*v1beta2.BackupSpec)
		cluster  *v1beta2.EtcdCluster
		affinity *corev1.Affinity // of the user
		want     bool
	}{
		"PVC":                               {onPVC, c, nil, true},
		"PVC, and the user prefers nodes":   {onPVC, c, jobPolicy().Affinity, true},
		"PVC, and the user prefers pods":    {onPVC, c, own, true},
		"PVC of endpoints":                  {func(s *v1beta2.BackupSpec) { byEndpoints(s); onPVC(s) }, nil, nil, false},
		"bucket":                            {nil, c, nil, false},
		"bucket, and the user prefers pods": {nil, c, own, false},
	} {
		backup := newBackup(test.spec)
		if test.affinity != nil {
			backup.Spec.Job = &v1beta2.JobPolicy{Affinity: test.affinity.DeepCopy()}
		}
		job, err := BackupJob(backup, backupRun(test.cluster))
		if err != nil {
			t.Fatal(err)
		}
		got := job.Spec.Template.Spec.Affinity.DeepCopy()
		if test.want {
			last := lastPreferred(got)
			if last == nil || last.TopologyKey != corev1.LabelHostname || !selects(t, last.LabelSelector, recoveryPod.Labels) || selects(t, last.LabelSelector, member.Labels) {
				t.Errorf("%s: it does not prefer the node of the recovery pod: %v", name, got)
				continue
			}
			got = withoutLastPreferred(got)
		}
		if diff := cmp.Diff(test.affinity, got); diff != "" {
			t.Errorf("%s: the affinity of the user has changed:\n%s", name, diff)
		}
		if test.affinity != nil && !cmp.Equal(test.affinity, backup.Spec.Job.Affinity) {
			t.Errorf("%s: the EtcdBackup is changed", name)
		}
	}
}

func lastPreferred(a *corev1.Affinity) *corev1.PodAffinityTerm {
	if a == nil || a.PodAffinity == nil {
		return nil
	}
	terms := a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(terms) == 0 {
		return nil
	}
	return &terms[len(terms)-1].PodAffinityTerm
}

// withoutLastPreferred drops the last term, and what is empty then.
func withoutLastPreferred(a *corev1.Affinity) *corev1.Affinity {
	terms := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if *terms = (*terms)[:len(*terms)-1]; len(*terms) > 0 {
		return a
	}
	if a.PodAffinity = nil; a.NodeAffinity != nil {
		return a
	}
	return nil
}
