// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func (a *app) connCommand() *cobra.Command {
	o, client := &output{}, ""
	cmd := &cobra.Command{
		Use:   "conn NAME",
		Short: "Print what an application needs to reach a cluster: endpoints, CA, certificates",
		Example: `  kubectl etcd conn prod
  kubectl etcd conn prod -o env
  kubectl etcd conn prod --client=shop
  kubectl etcd conn prod --client=tenants -o kamaji`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			t, err := a.target(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			connection := report.NewConnection(t.cluster)
			if client != "" {
				if connection, err = report.NewClientConnection(t.cluster, client); err != nil {
					return failure.Usage(err.Error())
				}
			}
			switch {
			case o.isData():
				return o.write(a.Out, connection)
			case o.format == formatEnv:
				render.Env(a.Out, connection)
			case slices.Contains(render.Layouts(), o.format):
				if err := render.Layout(a.Out, o.format, connection); err != nil {
					return failure.Usage(err.Error())
				}
			default:
				render.Connection(a.Out, connection, a.style(false))
			}
			return nil
		},
	}
	o.bind(cmd, append([]string{formatEnv, formatJSON, formatYAML}, render.Layouts()...)...)
	cmd.Flags().StringVar(&client, "client", "", "name of a client in spec.clients, whose Secret is used; by default the Secret that all applications share")
	return cmd
}
