// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// completionTime is how long a shell waits for names.
const completionTime = 3 * time.Second

// completeClusters completes the name of a cluster as the first argument.
func (a *app) completeClusters(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.names(cmd.Context(), typed, nil, func(ctx context.Context) ([]string, error) {
		clients, err := a.connect()
		if err != nil {
			return nil, err
		}
		list, err := clients.Etcd.EtcdV1beta2().EtcdClusters(clients.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// completeMembers completes a cluster, then names of its members.
func (a *app) completeMembers(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeClusters(cmd, args, typed)
	}
	return a.membersOf(cmd.Context(), args[0], args[1:], typed)
}

// completeMemberFlag completes a flag that names a member of the cluster in the first argument.
func (a *app) completeMemberFlag(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.membersOf(cmd.Context(), args[0], nil, typed)
}

func (a *app) membersOf(ctx context.Context, cluster string, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.names(ctx, typed, given, func(ctx context.Context) ([]string, error) {
		clients, err := a.connect()
		if err != nil {
			return nil, err
		}
		object, err := report.ReadCluster(ctx, clients, clients.Namespace, cluster)
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range object.Status.MemberStatuses {
			names = append(names, object.Status.MemberStatuses[i].Name)
		}
		return names, nil
	})
}

// names returns the names that begin with what was typed and were not given yet. An error
// completes nothing: a shell cannot show it.
func (a *app) names(ctx context.Context, typed string, given []string, read func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	all, err := read(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, name := range all {
		if strings.HasPrefix(name, typed) && !slices.Contains(given, name) {
			list = append(list, name)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
