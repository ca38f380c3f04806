// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/support"
)

func (a *app) reportCommand() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Collect objects, events and logs of a cluster in an archive without secrets",
		Long: `Collects what a person who helps with a cluster needs: the EtcdCluster, its backups and
restores, what its members say, pods, PVCs, Services, events, and logs of members and of
the operator. It reads what the rights of the user allow; manifest.yaml in the archive
lists what is missing.

No Secret is read. Values of environment variables, annotations of other programs, tokens,
passwords, private keys, and keys and values of etcd are replaced with REDACTED. Names and
addresses stay: read the archive before you give it to others.`,
		Example: `  kubectl etcd report prod
  kubectl etcd report prod -f prod.tar.gz`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.report(cmd.Context(), args[0], file) },
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write, such as prod.tar.gz; by default NAME-report-TIME.tar.gz")
	return cmd
}

func (a *app) report(ctx context.Context, name, file string) error {
	clients, err := a.connect()
	if err != nil {
		return err
	}
	now := a.Clock.Now().UTC()
	folder := name + "-report-" + now.Format("20060102-150405")
	if file == "" {
		file = folder + ".tar.gz"
	}
	archive, err := support.Create(file, folder, now)
	if err != nil {
		return err
	}
	line := a.line("Report of " + clients.Namespace + "/" + name)
	manifest, err := support.Collect(ctx, clients, archive, support.Request{
		Namespace: clients.Namespace, Name: name, Plugin: version.Get().GitVersion, Now: now,
		Show: func(part string) { line.Show(progress.Step{Text: part}) },
	})
	if err != nil {
		line.Clear()
		return errors.Join(err, archive.Abandon())
	}
	size, err := archive.Close()
	if err != nil {
		line.Clear()
		return err
	}
	line.End(a.Out, fmt.Sprintf("Wrote %s: %s, %d files. Secrets are redacted; read the archive before you give it to others.", file, progress.Size(size), len(manifest.Files)))
	for _, m := range manifest.Missing {
		fmt.Fprintf(a.Err, "missing: %s: %s\n", m.Part, m.Why)
	}
	return nil
}
