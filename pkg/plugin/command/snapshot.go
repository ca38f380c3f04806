// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/download"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
)

const (
	// mostErrorBytes of an error are read.
	mostErrorBytes = 64 << 10
	// headerMember and headerRevision tell what a snapshot is of.
	headerMember   = "Etcd-Member"
	headerRevision = "Etcd-Revision"
	// headerConfirmed is "false" if no quorum confirmed that the member has every write.
	headerConfirmed = "Etcd-Confirmed"
)

// errUnconfirmed means that a snapshot was saved and may lack writes.
var errUnconfirmed = errors.New("no quorum confirmed that the member has every write")

func (a *app) snapshotCommand() *cobra.Command {
	member := ""
	save := &cobra.Command{
		Use:   "save NAME FILE",
		Short: "Copy the database of a cluster to a file on this machine, and check its hash",
		Example: `  kubectl etcd snapshot save prod prod.db
  kubectl etcd snapshot save prod survivor.db --member prod-s8wc`,
		Args: takes(2, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeClusters(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.saveSnapshot(cmd.Context(), args[0], args[1], member)
		},
	}
	save.Flags().StringVar(&member, "member", "", "member to copy from; by default a follower that responds")
	_ = save.RegisterFlagCompletionFunc("member", a.completeMemberFlag) // the flag exists
	return group(&cobra.Command{Use: "snapshot", Short: "Copy the database of a cluster to this machine"}, save)
}

func (a *app) saveSnapshot(ctx context.Context, name, file, member string) error {
	if err := download.CheckNew(file); err != nil {
		return err
	}
	clients, err := a.connect()
	if err != nil {
		return err
	}
	line := a.line("Snapshot of " + clients.Namespace + "/" + name)
	response, err := openSnapshot(ctx, clients.Config, clients.Etcd.EtcdV1beta2().RESTClient(), clients.Namespace, name, member)
	if err != nil {
		return failure.With(err, failure.Right{Verb: "get", Resource: "etcdclusters/proxy", Namespace: clients.Namespace})
	}
	defer response.Body.Close()
	from := response.Header.Get(headerMember)
	result, err := download.Save(ctx, response.Body, file, response.ContentLength, func(bytes int64) {
		line.Show(progress.Step{Text: "from " + from, Done: bytes, Total: max(0, response.ContentLength), Bytes: true})
	})
	if err != nil {
		line.Clear()
		return err
	}
	line.End(a.Out, fmt.Sprintf("Saved %s: %s of member %s, revision %s, hash checked.", file, progress.Size(result.Bytes), from, response.Header.Get(headerRevision)))
	if response.Header.Get(headerConfirmed) == "false" && member == "" {
		return fmt.Errorf("%w: %s may lack the newest writes. Save it again when a quorum responds; --member %s copies what that member has", errUnconfirmed, file, from)
	}
	return nil
}

// openSnapshot opens the stream. It has no time limit: the server ends a stream that stops.
func openSnapshot(ctx context.Context, config *rest.Config, client rest.Interface, namespace, name, member string) (*http.Response, error) {
	stream := rest.CopyConfig(config)
	stream.Timeout = 0
	httpClient, err := rest.HTTPClientFor(stream)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	request := client.Get().Namespace(namespace).Resource("etcdclusters").Name(name).SubResource("proxy", "snapshot")
	if member != "" {
		request = request.Param("member", member)
	}
	address := request.URL()
	// The URL of a request holds the time limit of the configuration.
	query := address.Query()
	query.Del("timeout")
	address.RawQuery = query.Encode()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	// A compressed response has no length.
	get.Header.Set("Accept-Encoding", "identity")
	get.Header.Set("User-Agent", config.UserAgent)
	response, err := httpClient.Do(get)
	if err != nil {
		return nil, fmt.Errorf("open the snapshot: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, statusError(response)
}

// statusError returns the error in a response.
func statusError(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, mostErrorBytes))
	if err != nil {
		return errors.Join(fmt.Errorf("open the snapshot: the response is %s", response.Status), err)
	}
	status := &metav1.Status{}
	if err := json.Unmarshal(text, status); err == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return apierrors.NewGenericServerResponse(response.StatusCode, http.MethodGet, v1beta2.Resource("etcdclusters/proxy"), "", string(text), 0, true)
}
