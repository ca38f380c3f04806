// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// evictRecoveryMember requests the eviction of the recovery member again and again, as a drain of its
// node would, from the moment in which its budget exists. A dry run of an eviction is decided as an
// eviction is. The result ends that, and fails the test unless each eviction was rejected.
func (c *cluster) evictRecoveryMember() (end func()) {
	ctx, cancel := context.WithCancel(c.ctx())
	rejected, allowed := 0, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			switch err := c.tryEviction(ctx); {
			case err == nil:
				allowed++
			case apierrors.IsTooManyRequests(err):
				rejected++
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() {
		c.Helper()
		cancel()
		<-done
		c.Logf("evictions of the recovery member: %d rejected, %d allowed", rejected, allowed)
		if rejected == 0 || allowed > 0 {
			c.Errorf("%d evictions of the recovery member were rejected, and %d allowed", rejected, allowed)
		}
	}
}

// tryEviction returns a NotFound error as long as there is no budget, or no recovery member that runs behind it. No
// budget keeps a pod that does not run: the recovery member restarts on its volume during the cutover.
func (c *cluster) tryEviction(ctx context.Context) error {
	if _, err := env.Kube.PolicyV1().PodDisruptionBudgets(c.namespace).Get(ctx, resources.RecoveryBudgetName(c.name), metav1.GetOptions{}); err != nil {
		return err
	}
	pods, err := env.Kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: resources.LabelRecovery + "=" + c.name})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 || pods.Items[0].DeletionTimestamp != nil || pods.Items[0].Status.Phase != corev1.PodRunning {
		return apierrors.NewNotFound(policyv1.Resource("pods"), c.name)
	}
	return env.Kube.CoreV1().Pods(c.namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: c.namespace},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}
