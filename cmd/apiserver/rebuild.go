// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/options"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/rebuild"
)

// newRebuildCommand returns the command that makes the storage again from the records of clusters.
func newRebuildCommand() *cobra.Command {
	var kubeconfig, output string
	var includeInvalid, excludeIncomplete bool
	prefix := options.DefaultEtcdPrefix
	command := &cobra.Command{
		Use:   "rebuild",
		Short: "Make a snapshot of the storage from the records of all EtcdClusters, after the storage and its backups were lost",
		Long: "Make a snapshot of the storage from the records of all EtcdClusters, which are ConfigMaps. It is for a storage that was lost\n" +
			"without a backup. Bring the snapshot back as a backup of the storage. EtcdBackups and EtcdRestores are not in it.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("connect to Kubernetes: %w; set --kubeconfig outside of a pod", err)
			}
			kube, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			found, err := rebuild.Find(command.Context(), kube)
			if err != nil {
				return err
			}
			if err := settle(&found, includeInvalid, excludeIncomplete); err != nil {
				return err
			}
			if len(found.Clusters) == 0 {
				return errors.Join(append(found.Incomplete, errors.New("no record describes an EtcdCluster: nothing can be made again"))...)
			}
			directory, err := os.MkdirTemp("", "rebuild-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(directory) }()
			if err := rebuild.Save(command.Context(), found.Clusters, prefix, directory, output); err != nil {
				return err
			}
			return report(command, found, output)
		},
	}
	ownUsage(command)
	command.Flags().StringVar(&kubeconfig, "kubeconfig", kubeconfig, "Path of a kubeconfig. In a pod the ServiceAccount is used without it.")
	command.Flags().StringVar(&prefix, "etcd-prefix", prefix, "The --etcd-prefix of the API server.")
	command.Flags().BoolVar(&includeInvalid, "include-invalid", false, "Take the EtcdClusters that the API would not accept as they are recorded.")
	command.Flags().BoolVar(&excludeIncomplete, "exclude-incomplete", false, "Leave out the EtcdClusters whose record has no declaration that can be read. Kubernetes then deletes their pods and Services.")
	command.Flags().StringVar(&output, "output", "etcd-operator.db", "The file to write.")
	return command
}

// settle takes the invalid EtcdClusters over, and leaves out those without a declaration that can be read, if the user
// wants so. It ends the command otherwise: Kubernetes deletes the pods of an EtcdCluster that is left out, and to take
// an invalid one may give its author what the API would reject.
func settle(found *rebuild.Found, includeInvalid, excludeIncomplete bool) error {
	return errors.Join(settleInvalid(found, includeInvalid), settleIncomplete(found, excludeIncomplete))
}

func settleInvalid(found *rebuild.Found, include bool) error {
	var errs []error
	for _, invalid := range found.Invalid {
		if include {
			found.Clusters = append(found.Clusters, invalid.Cluster)
			continue
		}
		errs = append(errs, fmt.Errorf("EtcdCluster %s/%s is not valid: %w", invalid.Cluster.Namespace, invalid.Cluster.Name, invalid.Err))
	}
	if len(errs) > 0 {
		errs = append(errs, errors.New("correct data.declaration of the ConfigMap NAME-record, or delete the ConfigMap if no controller wrote it; "+
			"--include-invalid takes these EtcdClusters as they are recorded"))
	}
	return errors.Join(errs...)
}

func settleIncomplete(found *rebuild.Found, exclude bool) error {
	if exclude || len(found.Incomplete) == 0 {
		return nil
	}
	return errors.Join(append(slices.Clone(found.Incomplete),
		errors.New("correct data.declaration of the ConfigMap NAME-record, or delete the ConfigMap if no controller wrote it; "+
			"--exclude-incomplete leaves these EtcdClusters out, and Kubernetes then deletes their pods and Services"))...)
}

func report(command *cobra.Command, found rebuild.Found, output string) error {
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAMESPACE\tNAME\tSIZE\tVERSION\tUID")
	for _, c := range found.Clusters {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", c.Namespace, c.Name, ptr.Deref(c.Spec.Replicas, 0), c.Spec.Version, c.UID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range found.Clusters {
		for _, use := range rebuild.Uses(c) {
			_, _ = fmt.Fprintf(command.OutOrStdout(), "%s/%s: its author needs the right to %s\n", c.Namespace, c.Name, use)
		}
	}
	for _, err := range found.Incomplete {
		_, _ = fmt.Fprintf(command.ErrOrStderr(), "not made again: %v\n", err)
	}
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s has %d EtcdClusters\n", output, len(found.Clusters))
	return nil
}
