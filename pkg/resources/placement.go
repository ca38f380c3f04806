// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// affinity keeps members of one cluster on different nodes: if possible by default,
// always if the user asked for it, as the user says if they said how.
func affinity(c *v1beta2.EtcdCluster) *corev1.Affinity {
	policy := podPolicy(c)
	if policy.Affinity != nil {
		return policy.Affinity.DeepCopy()
	}
	term := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: Labels(c.Name)},
		TopologyKey:   corev1.LabelHostname,
	}
	anti := &corev1.PodAntiAffinity{}
	if policy.AntiAffinity {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	} else {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}}
	}
	return &corev1.Affinity{PodAntiAffinity: anti}
}

// spread spreads the members over zones if there are any.
func spread(c *v1beta2.EtcdCluster) []corev1.TopologySpreadConstraint {
	policy := podPolicy(c)
	if len(policy.TopologySpreadConstraints) > 0 {
		return policy.DeepCopy().TopologySpreadConstraints
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelTopologyZone,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: Labels(c.Name)},
	}}
}
