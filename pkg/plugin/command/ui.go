// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/ui"
)

// looksPerPage is how many times rarer than a command the page reads the API, because it may stay
// open for days.
const looksPerPage = 3

type uiOptions struct {
	all  bool
	port int
}

func (a *app) uiCommand() *cobra.Command {
	o := &uiOptions{}
	cmd := &cobra.Command{
		Use:   "ui [NAME]",
		Short: "Show clusters, backups and restores on a page for the browser of this machine",
		Long: `Serves a page on 127.0.0.1 that shows what kubectl etcd status shows, with backups,
restores and next steps, and follows changes. The page has your rights and changes
nothing. The address that is printed has a token; without the token nothing is served.
Keep the address to yourself. Ctrl-C ends the page.`,
		Example: `  kubectl etcd ui
  kubectl etcd ui -A --port 8080`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.ui(cmd.Context(), o, args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "show the clusters of all namespaces")
	cmd.Flags().IntVar(&o.port, "port", 0, "port of 127.0.0.1; any that is free if omitted")
	return cmd
}

func (a *app) ui(ctx context.Context, o *uiOptions, args []string) error {
	if o.all && len(args) > 0 {
		return failure.Usage("-A shows the clusters of all namespaces; omit the name " + args[0] + ", or omit -A and name the namespace with -n")
	}
	if o.port < 0 || o.port > 65535 {
		return failure.Usage(fmt.Sprintf("--port=%d is no port; give 0 to 65535", o.port))
	}
	clients, err := a.connect()
	if err != nil {
		return err
	}
	source := &ui.Source{Clients: clients, Namespace: clients.Namespace, Clock: a.Clock, Every: looksPerPage * a.Every}
	if o.all {
		source.Namespace = ""
	}
	if len(args) > 0 {
		source.Name = args[0]
	}
	// A wrong name and a missing right are errors here, not on the page.
	if err := source.Read(ctx); err != nil {
		return err
	}
	server, err := ui.Listen(ctx, source, o.port)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, server.URL())
	fmt.Fprintln(a.Err, "Open this address in a browser of this machine. Ctrl-C ends the page.")
	if err := server.Serve(ctx); ctx.Err() == nil {
		return err
	}
	return interrupted(ctx)
}
