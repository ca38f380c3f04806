// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func (a *app) connCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "conn NAME",
		Short: "Print what an application needs to reach a cluster: endpoints, CA, certificates",
		Example: `  kubectl etcd conn prod
  kubectl etcd conn prod -o env`,
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
			switch {
			case o.isData():
				return o.write(a.Out, connection)
			case o.format == formatEnv:
				render.Env(a.Out, connection)
			default:
				render.Connection(a.Out, connection, a.style(false))
			}
			return nil
		},
	}
	o.bind(cmd, formatEnv, formatJSON, formatYAML)
	return cmd
}
