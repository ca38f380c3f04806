// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// versions is what the command version prints.
type versions struct {
	metav1.TypeMeta `json:",inline"`

	Plugin     string `json:"plugin"`
	Commit     string `json:"commit,omitempty"`
	API        string `json:"api"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Served is true if Kubernetes serves the API.
	Served  bool   `json:"served"`
	Problem string `json:"problem,omitempty"`
}

func (a *app) versionCommand() *cobra.Command {
	o, client := &output{}, false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin, of Kubernetes and of the API",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := &versions{
				TypeMeta: metav1.TypeMeta{APIVersion: report.APIVersion, Kind: "Versions"},
				Plugin:   version.Get().GitVersion, Commit: version.Get().GitCommit, API: v1beta2.SchemeGroupVersion.String(),
			}
			if !client {
				a.addServer(cmd, v)
			}
			if o.isData() {
				return o.write(a.Out, v)
			}
			fmt.Fprintf(a.Out, "plugin      %s\nAPI         %s\n", v.Plugin, v.API)
			if v.Kubernetes != "" {
				fmt.Fprintf(a.Out, "Kubernetes  %s\n", v.Kubernetes)
			}
			if v.Problem != "" {
				fmt.Fprintln(a.Err, v.Problem)
			}
			return nil
		},
	}
	o.bind(cmd, formatJSON, formatYAML)
	cmd.Flags().BoolVar(&client, "client", false, "print the version of the plugin only, without a request")
	return cmd
}

// addServer adds what Kubernetes says. That it says nothing is no error of this command.
func (a *app) addServer(cmd *cobra.Command, v *versions) {
	clients, err := a.connect()
	if err != nil {
		v.Problem = err.Error()
		return
	}
	server, err := clients.Kube.Discovery().ServerVersion()
	if err != nil {
		v.Problem = "Kubernetes does not say its version: " + err.Error()
		return
	}
	v.Kubernetes = server.GitVersion
	found, err := apiIsServed(cmd.Context(), clients, "")
	v.Served = found.met
	if err == nil && !found.met {
		v.Problem = found.why
	}
}
