// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
)

// bugsOfAdmission are mistakes with quotas and with policies that change or reject pods.
func bugsOfAdmission() []bug {
	return []bug{
		{name: "takes what a policy changed for another declaration", rules: "L1 L3", wrap: deciding(comparePods)},
		{name: "creates a rejected pod again and again", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return insistent{c.Objects} })},
	}
}

// comparePods compares the image that a pod has with the one that it was to have.
func comparePods(m *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	for i := range o.Pods {
		pod, found := kubernetes.Lookup[*corev1.Pod](m.W.Store, kubernetes.KindPod, o.Pods[i].Name)
		if found && pod.Spec.Containers[0].Image != kubernetes.Requested(pod.Spec.Containers[0].Image) {
			o.Pods[i].Template = "another"
		}
	}
	return decide(o)
}

// insistent repeats a request that was rejected.
type insistent struct{ cluster.Objects }

// CreatePod implements cluster.Objects.
func (o insistent) CreatePod(ctx context.Context, pod *corev1.Pod) (created *corev1.Pod, err error) {
	for range 10 {
		if created, err = o.Objects.CreatePod(ctx, pod); !apierrors.IsForbidden(err) {
			break
		}
	}
	return created, err
}
