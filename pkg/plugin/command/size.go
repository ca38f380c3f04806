// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func (a *app) hibernateCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "hibernate NAME",
		Short:             "Delete the pods of a cluster and keep its PVCs",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.hibernate(cmd.Context(), o, args[0]) },
	}
	o.bind(cmd)
	return cmd
}

func (a *app) hibernate(ctx context.Context, o *changeOptions, name string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	size := ptr.Deref(t.cluster.Spec.Replicas, 0)
	if size == 0 {
		fmt.Fprintf(a.Out, "%s is hibernated already. Wake it: kubectl etcd wake %s -n %s\n", t, name, t.cluster.Namespace)
		return nil
	}
	return a.resize(ctx, o, t, 0, fmt.Sprintf("Hibernation of %s: its size changes from %d to 0. The pods are deleted, and clients lose the cluster. The PVCs stay.", t, size))
}

func (a *app) wakeCommand() *cobra.Command {
	o, size := &changeOptions{}, int32(0)
	cmd := &cobra.Command{
		Use:               "wake NAME",
		Short:             "Start a hibernated cluster again, with its data",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.wake(cmd.Context(), o, args[0], size) },
	}
	o.bind(cmd)
	cmd.Flags().Int32Var(&size, "size", 0, "number of members; by default the number of PVCs that were kept")
	return cmd
}

func (a *app) wake(ctx context.Context, o *changeOptions, name string, size int32) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	if now := ptr.Deref(t.cluster.Spec.Replicas, 0); now != 0 {
		fmt.Fprintf(a.Out, "%s is not hibernated: its size is %d.\n", t, now)
		return nil
	}
	if size == 0 {
		if size, err = countPVCs(ctx, t); err != nil {
			return err
		}
	}
	if size == 0 {
		return failure.Usage("no PVC of a member exists, so the former size is not known; name it with --size")
	}
	return a.resize(ctx, o, t, size, fmt.Sprintf("Wake of %s: its size changes from 0 to %d. Members that have a PVC start with their data.", t, size))
}

// countPVCs returns how many members have a PVC.
func countPVCs(ctx context.Context, t *target) (int32, error) {
	members, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).GetMembers(ctx, t.cluster.Name, metav1.GetOptions{})
	if err != nil {
		return 0, failure.With(err, t.right("get", "etcdclusters/members"))
	}
	count := int32(0)
	for i := range members.Members {
		if pvc := members.Members[i].Claim; pvc != nil && !pvc.Terminating {
			count++
		}
	}
	return count, nil
}

// resize changes the size of a cluster through its subresource scale, which rejects an unsafe
// step.
func (a *app) resize(ctx context.Context, o *changeOptions, t *target, size int32, plan string) error {
	send := func(ctx context.Context, dryRun bool) error {
		body := &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: t.cluster.Name, Namespace: t.cluster.Namespace, UID: t.cluster.UID},
			Spec:       autoscalingv1.ScaleSpec{Replicas: size},
		}
		_, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).UpdateScale(ctx, t.cluster.Name, body, metav1.UpdateOptions{DryRun: dry(dryRun)})
		return failure.With(err, t.right("update", "etcdclusters/scale"))
	}
	return a.carryOut(ctx, o, t, change{
		title:       "Change of the size of " + t.String(),
		needsQuorum: size > 0,
		plan: func(ctx context.Context) ([]string, error) {
			return []string{plan}, send(ctx, true)
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			return func(ctx context.Context) (state, error) {
				cluster, err := t.read(ctx)
				if err != nil {
					return state{}, err
				}
				return lookAtSize(t, cluster, size)
			}, "", nil
		},
	})
}

// lookAtSize says how far a change of the size is.
func lookAtSize(t *target, cluster *v1beta2.EtcdCluster, size int32) (state, error) {
	if now := ptr.Deref(cluster.Spec.Replicas, 0); now != size {
		return state{}, fmt.Errorf("spec.size of %s was changed to %d by another request; see kubectl etcd status %s -n %s", t, now, cluster.Name, cluster.Namespace)
	}
	outcome := fmt.Sprintf("%s is hibernated. Its PVCs stay.", t)
	if size > 0 {
		outcome = fmt.Sprintf("%s serves with %d members.", t, size)
	}
	ready := len(cluster.Status.Members.Ready)
	step := progress.Step{Done: int64(ready), Total: int64(size), Text: waitsFor(cluster)}
	if size == 0 {
		step = progress.Step{Text: waitsFor(cluster)}
	}
	return state{step: step, done: isReady(cluster), outcome: outcome}, stalled(t, cluster)
}

// isReady is true once the status says that the present spec has been reached.
func isReady(cluster *v1beta2.EtcdCluster) bool {
	ready := report.ConditionOf(cluster, v1beta2.ClusterConditionReady)
	return cluster.Status.ObservedGeneration >= cluster.Generation && ready.Status == corev1.ConditionTrue && ready.ObservedGeneration >= cluster.Generation
}

// waitsFor says what happens now.
func waitsFor(cluster *v1beta2.EtcdCluster) string {
	if cluster.Status.ObservedGeneration < cluster.Generation {
		return "the controller has not acted on the change yet"
	}
	if b := cluster.Status.BlockedBy; b != nil {
		return "waits: " + b.Message
	}
	if work := report.Work(cluster); len(work) > 0 {
		return cmp.Or(work[0].Message, work[0].Reason)
	}
	return report.ConditionOf(cluster, v1beta2.ClusterConditionReady).Message
}

// stalled is an error once the controller cannot continue without a person.
func stalled(t *target, cluster *v1beta2.EtcdCluster) error {
	c := report.ConditionOf(cluster, v1beta2.ClusterConditionStalled)
	if c.Status != corev1.ConditionTrue || c.ObservedGeneration < cluster.Generation {
		return nil
	}
	return failure.NotMet(fmt.Sprintf("%s is stalled (%s): %s\nSee what to do: kubectl etcd why %s -n %s", t, c.Reason, c.Message, cluster.Name, cluster.Namespace))
}
