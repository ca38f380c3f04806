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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/share"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	// maxStreams limits how many snapshots are streamed at the same time. During a stream the
	// member cannot free pages of its database.
	maxStreams = 8
	// openTimeout limits the search for a member that serves a snapshot.
	openTimeout = 20 * time.Second
	// streamStall is how long a member may send nothing, or a client may read nothing.
	streamStall = 60 * time.Second
	// bufferBytes is how much is written to the client at a time.
	bufferBytes = 256 << 10
)

// ProxyREST streams snapshots. The subresource is called proxy because the kube-apiserver ends
// requests to all other ones after a minute. ProxyREST is a Connecter, which owns the
// connection, so that it can end an incomplete stream in a way that the client notices.
type ProxyREST struct {
	clusters rest.Getter
	prober   *prober.Prober
	guard    rights.Guard
	// streams limits how many snapshots are streamed at the same time.
	streams *share.Limiter
	// stall is how long a member may send nothing, or a client may read nothing.
	stall time.Duration
}

var (
	_ rest.Connecter       = &ProxyREST{}
	_ rest.StorageMetadata = &ProxyREST{}
)

func newProxyREST(clusters rest.Getter, prober *prober.Prober, guard rights.Guard) *ProxyREST {
	return &ProxyREST{clusters: clusters, prober: prober, guard: guard, streams: share.NewLimiter(share.Divided(maxStreams)), stall: streamStall}
}

// New returns empty options.
func (r *ProxyREST) New() runtime.Object { return &v1beta2.EtcdClusterProxyOptions{} }

// Destroy does nothing: the store belongs to the main resource.
func (r *ProxyREST) Destroy() {}

// ConnectMethods returns the HTTP methods that are served.
func (r *ProxyREST) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions returns the object that the query is decoded into, and the field for the
// rest of the path.
func (r *ProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &v1beta2.EtcdClusterProxyOptions{}, true, "path"
}

// ProducesMIMETypes returns the type of a response.
func (r *ProxyREST) ProducesMIMETypes(string) []string { return []string{"application/octet-stream"} }

// ProducesObject returns a string: a response is not an API object.
func (r *ProxyREST) ProducesObject(string) any { return "" }

// Connect checks the request and returns the handler that streams the snapshot.
func (r *ProxyREST) Connect(ctx context.Context, name string, obj runtime.Object, responder rest.Responder) (http.Handler, error) {
	options, ok := obj.(*v1beta2.EtcdClusterProxyOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the options of etcdclusters/proxy are a %T", obj))
	}
	// The generic API server decodes the path with a leading slash.
	if strings.TrimPrefix(options.Path, "/") != "snapshot" {
		return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters/proxy"), name+"/proxy/"+strings.TrimPrefix(options.Path, "/"))
	}
	if err := r.authorize(ctx, name); err != nil {
		return nil, err
	}
	cluster, err := getCluster(ctx, r.clusters, name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { r.serve(ctx, w, cluster, options.Member, responder) }), nil
}

// authorize also requires the verb create. Many roles for readers have the verb get on all
// subresources, but a snapshot contains every key of the cluster.
func (r *ProxyREST) authorize(ctx context.Context, name string) error {
	has, reason, err := r.guard.Has(ctx, rights.Right{
		Verb: "create", Group: v1beta2.SchemeGroupVersion.Group, Resource: "etcdclusters", Subresource: "proxy", Name: name,
	})
	if err != nil || has {
		return err
	}
	return apierrors.NewForbidden(v1beta2.Resource("etcdclusters/proxy"), name,
		fmt.Errorf("a snapshot contains every key of the cluster, so the verb get is not enough. The verb create on etcdclusters/proxy is missing; ask an administrator of the namespace for a Role with both verbs: %s", reason))
}

// serve streams the snapshot. An error before the first byte is sent as a Status. An error after
// it ends the connection, so that no client treats an incomplete snapshot as complete.
func (r *ProxyREST) serve(ctx context.Context, w http.ResponseWriter, cluster *v1beta2.EtcdCluster, member string, responder rest.Responder) {
	release, err := r.acquire(cluster.Namespace)
	if err != nil {
		snapshots.WithLabelValues("refused").Inc()
		responder.Error(err)
		return
	}
	defer release()
	source, err := r.open(ctx, cluster, member)
	if err != nil {
		snapshots.WithLabelValues("refused").Inc()
		responder.Error(err)
		return
	}
	defer func() { _ = source.Close() }() // the stream has ended, or its error was reported
	snapshotStreams.Inc()
	defer snapshotStreams.Dec()

	logger := klog.FromContext(ctx).WithValues("cluster", klog.KObj(cluster), "member", source.Endpoint.Name)
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(source.Size(), 10))
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", source.Endpoint.Name+".db"))
	header.Set("Etcd-Member", source.Endpoint.Name)
	header.Set("Etcd-Revision", strconv.FormatInt(source.Revision, 10))
	header.Set("Etcd-Confirmed", strconv.FormatBool(source.Confirmed))
	w.WriteHeader(http.StatusOK)

	// The encoder returns an error at the end if the hash of the snapshot is wrong.
	checked := snapshot.Encode(source, snapshot.Options{})
	defer func() { _ = checked.Close() }()
	outcome, err := r.send(w, checked)
	snapshots.WithLabelValues(outcome).Inc()
	if err != nil {
		logger.Info("Snapshot stream ended early", "outcome", outcome, "err", err)
		panic(http.ErrAbortHandler) //nolint:forbidigo // only this ends a connection so that the client sees an error
	}
	logger.V(2).Info("Snapshot streamed", "bytes", source.Size(), "revision", source.Revision)
}

// acquire takes one of the places for streams, or says what lacks.
func (r *ProxyREST) acquire(namespace string) (release func(), err error) {
	release, lack := r.streams.Acquire(namespace)
	switch lack {
	case share.Nothing:
		return release, nil
	case share.OfNamespace:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("this API server streams as many snapshots of namespace %s as it has free places, which are for other namespaces; try again in 10 seconds", namespace), 10)
	default:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("this API server streams %d snapshots already; try again in 10 seconds", r.streams.Total()), 10)
	}
}

// send copies the whole snapshot. On an error the outcome says whether the source or the client failed.
func (r *ProxyREST) send(w http.ResponseWriter, from io.Reader) (outcome string, err error) {
	control := http.NewResponseController(w)
	buffer := make([]byte, bufferBytes)
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

// write sends data to the client; without data it flushes. The deadline ends the stream to a
// client that stopped reading, which would keep the member from freeing pages. It is removed
// afterwards, because a client may wait for a slow member.
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

// open opens the stream from the named member. Without a name it tries followers first, and
// without a quorum any member that responds.
func (r *ProxyREST) open(ctx context.Context, cluster *v1beta2.EtcdCluster, member string) (*etcd.Snapshot, error) {
	if !r.prober.HasKubernetes() {
		return nil, apierrors.NewServiceUnavailable(prober.ErrNoKubernetes.Error())
	}
	found, err := r.prober.Discover(ctx, cluster)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if found.CertificateErr != nil {
		return nil, apierrors.NewServiceUnavailable(found.CertificateErr.Error())
	}
	client := r.prober.Client(found)
	search, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var sources []etcd.Endpoint
	if member == "" {
		if sources, err = client.SnapshotSources(search); err != nil {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no member of EtcdCluster %s serves a snapshot: %v", cluster.Name, err))
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
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no member of EtcdCluster %s serves a snapshot: %v", cluster.Name, failed))
}
