// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	// maxStreams bounds how many snapshots are streamed at the same time. Each keeps a
	// member from freeing pages, and takes its share of the network.
	maxStreams = 8
	// openTimeout bounds the search for a member that serves a snapshot.
	openTimeout = 20 * time.Second
	// streamStall is how long a member may send nothing, or a client read nothing.
	streamStall = 60 * time.Second
	// chunk is how much is written at a time, in bytes.
	chunk = 256 << 10
)

// ProxyREST serves what is streamed, under the one name of a subresource that the
// kube-apiserver does not cut after a minute. It is a Connecter, which owns the
// connection: a stream that breaks must look broken to whoever reads it.
type ProxyREST struct {
	clusters getter
	asker    *live.Asker
	guard    rights.Guard
	slots    chan struct{}
	// stall is how long a member may send nothing, or a client read nothing.
	stall time.Duration
}

var (
	_ rest.Connecter       = &ProxyREST{}
	_ rest.StorageMetadata = &ProxyREST{}
)

func newProxy(clusters getter, asker *live.Asker, guard rights.Guard) *ProxyREST {
	return &ProxyREST{clusters: clusters, asker: asker, guard: guard, slots: make(chan struct{}, maxStreams), stall: streamStall}
}

// New returns empty options.
func (r *ProxyREST) New() runtime.Object { return &v1beta2.EtcdClusterProxyOptions{} }

// Destroy leaves what is shared to the main resource.
func (r *ProxyREST) Destroy() {}

// ConnectMethods are the HTTP methods that are served.
func (r *ProxyREST) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions returns where the parameters go, and that there is a path.
func (r *ProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &v1beta2.EtcdClusterProxyOptions{}, true, "path"
}

// ProducesMIMETypes says what is answered.
func (r *ProxyREST) ProducesMIMETypes(string) []string { return []string{"application/octet-stream"} }

// ProducesObject says that no object is.
func (r *ProxyREST) ProducesObject(string) any { return "" }

// Connect checks everything that can be checked before the first byte.
func (r *ProxyREST) Connect(ctx context.Context, name string, obj runtime.Object, responder rest.Responder) (http.Handler, error) {
	options, ok := obj.(*v1beta2.EtcdClusterProxyOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
	}
	// The server that decodes the path of a connection begins it with a slash.
	if strings.TrimPrefix(options.Path, "/") != "snapshot" {
		return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters/proxy"), name+"/proxy/"+strings.TrimPrefix(options.Path, "/"))
	}
	if err := r.authorize(ctx, name); err != nil {
		return nil, err
	}
	cluster, err := read(ctx, r.clusters, name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { r.serve(ctx, w, cluster, options.Member, responder) }), nil
}

// authorize asks for the right to create, too. The right to get proxies is often given
// away with the right to look at things; this hands out every key of the cluster.
func (r *ProxyREST) authorize(ctx context.Context, name string) error {
	has, reason, err := r.guard.Has(ctx, rights.Right{
		Verb: "create", Group: v1beta2.SchemeGroupVersion.Group, Resource: "etcdclusters", Subresource: "proxy", Name: name,
	})
	if err != nil || has {
		return err
	}
	return apierrors.NewForbidden(v1beta2.Resource("etcdclusters/proxy"), name,
		fmt.Errorf("a snapshot holds every key, so reading it needs the verb create on etcdclusters/proxy beside get: %s", reason))
}

// serve streams the snapshot. Until the first byte an error is a Status; after it, it
// ends the connection, so that no client takes a part for the whole.
func (r *ProxyREST) serve(ctx context.Context, w http.ResponseWriter, cluster *v1beta2.EtcdCluster, member string, responder rest.Responder) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		snapshots.WithLabelValues("refused").Inc()
		responder.Error(apierrors.NewTooManyRequests("too many snapshots are being streamed", 10))
		return
	}
	source, err := r.open(ctx, cluster, member)
	if err != nil {
		snapshots.WithLabelValues("refused").Inc()
		responder.Error(err)
		return
	}
	defer func() { _ = source.Close() }() // it was read to its end, or its failure was told
	streams.Inc()
	defer streams.Dec()

	logger := klog.FromContext(ctx).WithValues("cluster", klog.KObj(cluster), "member", source.Endpoint.Name)
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(source.Size(), 10))
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", source.Endpoint.Name+".db"))
	header.Set("Etcd-Member", source.Endpoint.Name)
	header.Set("Etcd-Revision", strconv.FormatInt(source.Revision, 10))
	w.WriteHeader(http.StatusOK)

	// The encoder hands out the hash at the end only if it is right.
	checked := snapshot.Encode(source, snapshot.Options{})
	defer func() { _ = checked.Close() }()
	outcome, err := r.send(w, checked)
	snapshots.WithLabelValues(outcome).Inc()
	if err != nil {
		logger.Info("A snapshot was not streamed to its end", "outcome", outcome, "err", err)
		panic(http.ErrAbortHandler) //nolint:forbidigo // the one way to end a connection so that its client sees an error
	}
	logger.V(2).Info("Streamed a snapshot", "bytes", source.Size(), "revision", source.Revision)
}

// send copies until the end, and says whose fault it is if that does not come.
func (r *ProxyREST) send(w http.ResponseWriter, from io.Reader) (outcome string, err error) {
	control := http.NewResponseController(w)
	buffer := make([]byte, chunk)
	for {
		n, readErr := from.Read(buffer)
		if n > 0 {
			if err := r.write(w, control, buffer[:n]); err != nil {
				return "client_failed", err
			}
			snapshotBytes.Add(float64(n))
		}
		switch {
		case errors.Is(readErr, io.EOF):
			if err := r.write(w, control, nil); err != nil {
				return "client_failed", err
			}
			return "complete", nil
		case readErr != nil:
			return "source_failed", readErr
		}
	}
}

// write hands bytes to the client, or without any what is still on its way there. One
// that does not read any more must not keep the member's pages; one that waits for the
// member has time.
func (r *ProxyREST) write(w io.Writer, control *http.ResponseController, data []byte) error {
	if err := control.SetWriteDeadline(time.Now().Add(r.stall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if len(data) == 0 {
		return control.Flush()
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// open finds a member and opens the stream: followers first, a survivor without a
// quorum if there is nobody else, or the member that was asked for.
func (r *ProxyREST) open(ctx context.Context, cluster *v1beta2.EtcdCluster, member string) (*etcd.Snapshot, error) {
	if !r.asker.Able() {
		return nil, apierrors.NewServiceUnavailable(live.ErrNoKubernetes.Error())
	}
	found, err := r.asker.Find(ctx, cluster)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if found.CertificateErr != nil {
		return nil, apierrors.NewServiceUnavailable(found.CertificateErr.Error())
	}
	client := r.asker.Client(found)
	search, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var sources []etcd.Endpoint
	if member == "" {
		if sources, err = client.SnapshotSources(search); err != nil {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no member serves a snapshot: %v", err))
		}
	} else {
		endpoint, exists := found.Endpoint(member)
		if !exists {
			return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters/proxy"), cluster.Name+"/snapshot?member="+member)
		}
		sources = []etcd.Endpoint{endpoint}
	}
	var failed error
	for _, endpoint := range sources {
		source, err := client.Snapshot(ctx, endpoint, r.stall)
		if err == nil {
			return source, nil
		}
		failed = errors.Join(failed, err)
		if search.Err() != nil {
			break
		}
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no member serves a snapshot: %v", failed))
}
