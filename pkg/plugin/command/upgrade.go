// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func (a *app) upgradeCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "upgrade NAME VERSION",
		Short:             "Change the version of etcd, one member after the other",
		Example:           "  kubectl etcd upgrade prod 3.6.16",
		Args:              takes(2, 2),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.upgrade(cmd.Context(), o, args[0], strings.TrimPrefix(args[1], "v"))
		},
	}
	o.bind(cmd)
	return cmd
}

func (a *app) upgrade(ctx context.Context, o *changeOptions, name, version string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	if isUpgraded(t.cluster) && isVersion(t.cluster.Spec.Version, version) {
		fmt.Fprintf(a.Out, "Every member of %s runs etcd %s already.\n", t, version)
		return nil
	}
	send := func(ctx context.Context, dryRun bool) error {
		return t.patchSpec(ctx, map[string]any{"version": version}, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title:       "Upgrade of " + t.String() + " to " + version,
		needsQuorum: true,
		plan: func(ctx context.Context) ([]string, error) {
			return describeUpgrade(t, version), send(ctx, true)
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
				return lookAtUpgrade(t, cluster, version)
			}, "", nil
		},
	})
}

func describeUpgrade(t *target, version string) []string {
	from := t.cluster.Status.CurrentVersion
	if from == "" {
		from = t.cluster.Spec.Version
	}
	lines := []string{fmt.Sprintf("Upgrade of %s: from etcd %s to %s. One member restarts at a time, the leader last.", t, from, version)}
	if minor(from) != minor(version) {
		lines = append(lines, "  There is no way back once every member runs the new minor version. Back up first: kubectl etcd backup "+t.cluster.Name+" -n "+t.cluster.Namespace)
	}
	return lines
}

// minor returns the first two numbers of a version.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// isVersion is true if both name the same image.
func isVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

// isRelease is true if a member that reports a version runs the desired one. The tag of an image may say more.
func isRelease(reported, desired string) bool {
	return v1beta2.EtcdRelease(reported) == v1beta2.EtcdRelease(desired)
}

// isUpgraded is true once every member runs the version in the spec.
func isUpgraded(cluster *v1beta2.EtcdCluster) bool {
	return cluster.Status.ObservedGeneration >= cluster.Generation && isRelease(cluster.Status.CurrentVersion, cluster.Spec.Version) &&
		report.ConditionOf(cluster, v1beta2.ClusterConditionUpgrading).Status == corev1.ConditionFalse
}

func lookAtUpgrade(t *target, cluster *v1beta2.EtcdCluster, version string) (state, error) {
	if !isVersion(cluster.Spec.Version, version) {
		return state{}, fmt.Errorf("spec.version of %s was changed to %s by another request; see kubectl etcd status %s -n %s",
			t, cluster.Spec.Version, cluster.Name, cluster.Namespace)
	}
	step := progress.Step{Total: int64(ptr.Deref(cluster.Spec.Replicas, 0)), Text: waitsFor(cluster)}
	for i := range cluster.Status.MemberStatuses {
		if isRelease(cluster.Status.MemberStatuses[i].Version, version) {
			step.Done++
		}
	}
	now := state{step: step, done: isUpgraded(cluster) && isReady(cluster), outcome: fmt.Sprintf("Every member of %s runs etcd %s.", t, version)}
	return now, stalled(t, cluster)
}
