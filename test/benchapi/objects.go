// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// shape is how large the objects of a stage are.
type shape struct {
	name string
	// goal is the size as JSON with managedFields, in bytes.
	goal int
	// variables of the environment that fill the object up to its goal; calibrate counts them.
	variables int
}

const (
	kilobyte = 1000
	// smallGoal is the size below which an object has no pod policy, and mediumGoal the size
	// below which its status says little about each member.
	smallGoal, mediumGoal = 2 * kilobyte, 5 * kilobyte
)

// newCluster returns an object as its author sends it.
func (s shape) newCluster(namespace, name string) *v1beta2.EtcdCluster {
	cluster := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16", Repository: v1beta2.DefaultRepository, PodDisruptionBudget: v1beta2.PodDisruptionBudgetEnabled},
	}
	if s.goal < smallGoal {
		return cluster
	}
	quantity := resource.MustParse
	cluster.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(quantity("8Gi"))}
	cluster.Spec.Pod = &v1beta2.PodPolicy{
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("500m"), corev1.ResourceMemory: quantity("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")},
		},
		PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("20Gi")}},
		},
	}
	for i := range s.variables {
		cluster.Spec.Pod.EtcdEnv = append(cluster.Spec.Pod.EtcdEnv, corev1.EnvVar{Name: fmt.Sprintf("BENCH_%03d", i), Value: fmt.Sprintf("value-%03d", i)})
	}
	return cluster
}

// newStatus returns the status of a running cluster. Each turn has a different status.
func (s shape) newStatus(cluster *v1beta2.EtcdCluster, turn int64) v1beta2.ClusterStatus {
	status := v1beta2.ClusterStatus{
		Phase: v1beta2.ClusterPhaseRunning, Replicas: 3, CurrentVersion: "3.6.16", ClientPort: 2379,
		ServiceName: cluster.Name + "-client", ObservedGeneration: cluster.Generation, DBSize: 20<<20 + turn,
	}
	if s.goal < smallGoal {
		return status
	}
	status.Conditions = []v1beta2.ClusterCondition{condition(v1beta2.ClusterConditionReady, corev1.ConditionTrue)}
	status.Tolerance = ptr.To[int32](1)
	for i, role := range []v1beta2.MemberRole{v1beta2.MemberRoleLeader, v1beta2.MemberRoleFollower, v1beta2.MemberRoleFollower} {
		name := fmt.Sprintf("%s-%d", cluster.Name, i)
		status.Members.Ready = append(status.Members.Ready, name)
		member := v1beta2.MemberStatus{Name: name, Version: "3.6.16", Role: role, Healthy: corev1.ConditionTrue}
		if s.goal >= mediumGoal {
			member.ID, member.Pod, member.Claim, member.Node = fmt.Sprintf("8e9e05c52164694%d", i), name, name, fmt.Sprintf("node-%d", i)
			member.DBSize = status.DBSize
		}
		status.MemberStatuses = append(status.MemberStatuses, member)
	}
	status.Leader = status.Members.Ready[0]
	return status
}

func condition(name v1beta2.ClusterConditionType, status corev1.ConditionStatus) v1beta2.ClusterCondition {
	const at = "2026-11-24T12:00:00Z"
	return v1beta2.ClusterCondition{Type: name, Status: status, Reason: "AsDeclared", Message: "Three of three members serve.", LastUpdateTime: at, LastTransitionTime: at}
}
