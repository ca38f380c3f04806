// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// ProgramPods follows the pods of an installed program, Controller or APIServer.
func (e *Environment) ProgramPods(ctx context.Context, deployment string) (*View[*corev1.Pod], error) {
	d, err := e.Kube.AppsV1().Deployments(SystemNamespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read deployment %s: %w", deployment, err)
	}
	return e.Pods(ctx, SystemNamespace, metav1.FormatLabelSelector(d.Spec.Selector))
}

// ScaleProgram sets the number of replicas of an installed program, waits until as
// many run and returns how many there were.
func (e *Environment) ScaleProgram(ctx context.Context, deployment string, replicas int32) (before int32, err error) {
	pods, err := e.ProgramPods(ctx, deployment)
	if err != nil {
		return 0, err
	}
	defer pods.Close()
	deployments := e.Kube.AppsV1().Deployments(SystemNamespace)
	// The deployment's own controller writes its status at any moment.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = scale.Spec.Replicas
		scale.Spec.Replicas = replicas
		_, err = deployments.UpdateScale(ctx, deployment, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return before, fmt.Errorf("scale %s: %w", deployment, err)
	}
	return before, pods.Await(ctx, AllReady(int(replicas)))
}

// RestartProgram gives an installed program new pods. Kubernetes restarts a container later and
// later the more often it ended; new pods have no such past.
func (e *Environment) RestartProgram(ctx context.Context, deployment string) error {
	for _, args := range [][]string{
		{"rollout", "restart", "deployment/" + deployment},
		{"rollout", "status", "deployment/" + deployment, "--timeout=2m"},
	} {
		if _, err := e.Kubectl(ctx, Command{Args: append(args, "-n", SystemNamespace)}); err != nil {
			return fmt.Errorf("replace the pod of %s: %w", deployment, err)
		}
	}
	return nil
}

// Program returns the description of an installed program.
func (e *Environment) Program(ctx context.Context, deployment string) (*appsv1.Deployment, error) {
	return e.Kube.AppsV1().Deployments(SystemNamespace).Get(ctx, deployment, metav1.GetOptions{})
}

// ReadyNodes returns the names of the nodes that are ready.
func (e *Environment) ReadyNodes(ctx context.Context) ([]string, error) {
	nodes, err := e.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range nodes.Items {
		for _, c := range nodes.Items[i].Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				names = append(names, nodes.Items[i].Name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
