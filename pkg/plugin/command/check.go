// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// checked is what a check found: whether its condition is met, and why.
type checked struct {
	met bool
	why string
}

// check is one condition.
type check func(ctx context.Context, clients *connect.Clients, name string) (checked, error)

func (a *app) checkCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "check",
		Short: "Check a condition, for scripts: exit code 0 if it is met, 3 if not",
		Example: `  kubectl etcd check healthy prod --timeout 5m
  kubectl etcd check backed-up prod --max-age 24h
  kubectl etcd check api`,
	}, a.checkHealthy(), a.checkBackedUp(), a.checkUpgraded(), a.checkAPI())
}

// checkOf returns the command of a check that names a cluster.
func (a *app) checkOf(use, short string, do check) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short, Args: takes(1, 1), ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCheck(cmd.Context(), timeout, args[0], do) },
	}
	bindCheckTimeout(cmd, &timeout)
	return cmd
}

func bindCheckTimeout(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", 0, "how long to wait until the condition is met; 0 checks once")
}

func (a *app) runCheck(ctx context.Context, timeout time.Duration, name string, do check) error {
	clients, err := a.connect()
	if err != nil {
		return err
	}
	if timeout <= 0 {
		found, err := do(ctx, clients, name)
		if err != nil {
			return err
		}
		if !found.met {
			return failure.NotMet(found.why)
		}
		fmt.Fprintln(a.Out, found.why)
		return nil
	}
	return a.follow(ctx, a.line("Check of "+name), timeout, func(ctx context.Context) (state, error) {
		found, err := do(ctx, clients, name)
		return state{step: progress.Step{Text: found.why}, done: found.met, outcome: found.why}, err
	})
}

func (a *app) checkHealthy() *cobra.Command {
	return a.checkOf("healthy NAME", "Check that every declared member serves and a quorum has just responded",
		func(ctx context.Context, clients *connect.Clients, name string) (checked, error) {
			s, err := report.ReadStatus(ctx, clients, clients.Namespace, name)
			if err != nil {
				return checked{}, err
			}
			text := fmt.Sprintf("%s/%s is %s: %s", s.Namespace, s.Name, s.Verdict, s.Message)
			if !s.Live {
				text = fmt.Sprintf("%s/%s: %s", s.Namespace, s.Name, s.Problems[0])
			}
			return checked{isHealthy(s), text}, nil
		})
}

func (a *app) checkBackedUp() *cobra.Command {
	var oldest time.Duration
	cmd := a.checkOf("backed-up NAME", "Check that a verified backup exists that is new enough",
		func(ctx context.Context, clients *connect.Clients, name string) (checked, error) {
			cluster, err := report.ReadCluster(ctx, clients, clients.Namespace, name)
			if err != nil {
				return checked{}, err
			}
			return a.isBackedUp(cluster, oldest), nil
		})
	cmd.Flags().DurationVar(&oldest, "max-age", 24*time.Hour, "how old the backup may be")
	return cmd
}

func (a *app) isBackedUp(cluster *v1beta2.EtcdCluster, oldest time.Duration) checked {
	name, last := cluster.Namespace+"/"+cluster.Name, cluster.Status.LastBackup
	if last == nil {
		return checked{why: name + " has no backup. Make one: kubectl etcd backup " + cluster.Name + " -n " + cluster.Namespace}
	}
	age := a.Clock.Since(last.Time.Time)
	text := fmt.Sprintf("the last backup of %s is %s, %s old", name, last.Name, render.Age(age))
	switch {
	case !last.Verified:
		return checked{why: text + ", and was not verified"}
	case last.DataDiffers:
		return checked{why: text + ", and etcd reported the alarm CORRUPT when it was made: it may have the wrong data"}
	case last.Unconfirmed:
		return checked{why: text + ", and no quorum confirmed it: it may lack the newest writes"}
	case resources.IsFuture(last.Time.Time, a.Clock.Now()):
		return checked{why: fmt.Sprintf("the time of the last backup of %s, %s, is in the future, so its age is unknown", name, last.Time.UTC().Format(time.RFC3339))}
	case age > oldest:
		return checked{why: fmt.Sprintf("%s, which is more than %v", text, oldest)}
	default:
		return checked{true, text + ", verified"}
	}
}

func (a *app) checkUpgraded() *cobra.Command {
	return a.checkOf("upgraded NAME", "Check that every member runs the version in spec.version",
		func(ctx context.Context, clients *connect.Clients, name string) (checked, error) {
			cluster, err := report.ReadCluster(ctx, clients, clients.Namespace, name)
			if err != nil {
				return checked{}, err
			}
			text := fmt.Sprintf("%s/%s: spec.version is %s, and the lowest version that a member runs is %s",
				cluster.Namespace, cluster.Name, cluster.Spec.Version, cluster.Status.CurrentVersion)
			return checked{isUpgraded(cluster), text}, nil
		})
}

func (a *app) checkAPI() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "api",
		Short: "Check that Kubernetes serves the API of the operator",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runCheck(cmd.Context(), timeout, "the API", apiIsServed)
		},
	}
	bindCheckTimeout(cmd, &timeout)
	return cmd
}

// apiIsServed asks for the resources of the group. Every authenticated user may.
func apiIsServed(ctx context.Context, clients *connect.Clients, _ string) (checked, error) {
	group := v1beta2.SchemeGroupVersion.String()
	err := clients.Etcd.EtcdV1beta2().RESTClient().Get().AbsPath("/apis/" + group).Do(ctx).Error()
	if err == nil {
		return checked{true, "Kubernetes serves " + group}, nil
	}
	if ctx.Err() != nil {
		return checked{}, ctx.Err()
	}
	return checked{why: fmt.Sprintf("Kubernetes does not serve %s: %v\nSee the cause: kubectl get apiservice %s.%s -o yaml; kubectl -n etcd-operator-system get pods",
		group, err, v1beta2.SchemeGroupVersion.Version, v1beta2.SchemeGroupVersion.Group)}, nil
}
