// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ErrStorageLost means that no server has used the storage although members of EtcdClusters exist. If the
// server served it, garbage collection would delete the pods and Services of these members.
var ErrStorageLost = errors.New("no API server has used this storage, but members of EtcdClusters exist, or PVCs of theirs; Kubernetes would delete the pods. " +
	"Use the storage with these EtcdClusters, or restore the data of the API server. To let Kubernetes delete the pods, or if the PVCs come from another Kubernetes cluster, " +
	"start once with --allow-empty-storage (PVCs stay), and then remove the flag")

const (
	// memberLookupInterval and memberLookupTimeout are how often and for how long a failed lookup
	// of members is retried: its rights may be granted after the start of the server.
	memberLookupInterval = time.Second
	memberLookupTimeout  = time.Minute
	// storageTimeout is how long the storage may take to respond.
	storageTimeout = 30 * time.Second
	// storageKeepAlive is after how long a connection to a member that is lost is noticed, and how long that member
	// may take to respond. Other members are read from then on.
	storageKeepAlive = 10 * time.Second
	// storageReconnect is the longest wait before a member is connected to again. The default of gRPC, two minutes, would
	// leave requests unconfirmed for that long after the storage has come back.
	storageReconnect = time.Second
	// storageConnect is how long a connection may take to be made. The address of a member may lead nowhere meanwhile.
	storageConnect = 5 * time.Second
)

// checkStorage is the preflight check of the storage. It passes if the storage was used before,
// or if Kubernetes has no members of EtcdClusters. Objects alone do not pass: another client may have created them in the
// moment in which a server served a storage that had lost all others.
func (o *Options) checkStorage(ctx context.Context, client *clientv3.Client) error {
	inUse, err := o.isStorageInUse(ctx, client)
	switch {
	case err != nil:
		return fmt.Errorf("read the storage: %w", err)
	case inUse:
		return nil
	case !o.AllowEmptyStorage:
		if err := o.checkNewStorage(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	if _, err := client.Put(ctx, o.inUseKey(), ""); err != nil {
		return fmt.Errorf("mark the storage as used: %w", err)
	}
	return nil
}

// isStorageInUse returns whether a server has marked the storage as used. The read goes through a quorum.
func (o *Options) isStorageInUse(ctx context.Context, client *clientv3.Client) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	response, err := client.Get(ctx, o.inUseKey(), clientv3.WithKeysOnly())
	if err != nil {
		return false, err
	}
	return response.Count > 0, nil
}

// inUseKey is written when a storage is used for the first time. A storage without objects may have had EtcdClusters that
// were deleted just now, and whose pods Kubernetes deletes as soon as this server serves.
func (o *Options) inUseKey() string {
	return storage.InUseKey(o.Recommended.Etcd.StorageConfig.Prefix)
}

// connectStorage returns a client of the storage, which the caller closes.
func (o *Options) connectStorage() (*clientv3.Client, error) {
	to, err := o.storageTransport()
	if err != nil {
		return nil, err
	}
	return storageClient(to)
}

// storageTransport returns how the server connects to its storage, including the egress selector.
func (o *Options) storageTransport() (storagebackend.TransportConfig, error) {
	to := o.Recommended.Etcd.StorageConfig.Transport
	var config server.Config
	if err := o.Recommended.EgressSelector.ApplyTo(&config); err != nil {
		return to, fmt.Errorf("egress selector: %w", err)
	}
	if config.EgressSelector != nil {
		to.EgressLookup = config.EgressSelector.Lookup
	}
	return to, nil
}

// storageClient connects to the storage as the server itself does, but again within a second after it was away.
func storageClient(to storagebackend.TransportConfig) (*clientv3.Client, error) {
	reconnect := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: storageConnect}
	reconnect.Backoff.BaseDelay, reconnect.Backoff.MaxDelay = storageReconnect/10, storageReconnect
	config := clientv3.Config{
		Endpoints: to.ServerList, Logger: zap.NewNop(),
		DialKeepAliveTime: storageKeepAlive, DialKeepAliveTimeout: storageKeepAlive,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect)},
	}
	if to.CertFile != "" || to.KeyFile != "" || to.TrustedCAFile != "" {
		var err error
		if config.TLS, err = (transport.TLSInfo{CertFile: to.CertFile, KeyFile: to.KeyFile, TrustedCAFile: to.TrustedCAFile}).ClientConfig(); err != nil {
			return nil, fmt.Errorf("certificates for the storage: %w", err)
		}
	}
	if to.EgressLookup != nil {
		dial, err := to.EgressLookup(egressselector.Etcd.AsNetworkContext())
		if err != nil {
			return nil, fmt.Errorf("egress to the storage: %w", err)
		}
		if dial != nil {
			config.DialOptions = append(config.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
					address = parsed.Host
				}
				return dial(ctx, "tcp", address)
			}))
		}
	}
	return clientv3.New(config)
}

// checkNewStorage checks that a storage without objects is really new: Kubernetes must have no
// pod and no PVC of an EtcdCluster.
func (o *Options) checkNewStorage(ctx context.Context) error {
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return fmt.Errorf("look for members of EtcdClusters before a new storage is used: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return checkNoMembers(ctx, kube, memberLookupInterval, o.memberLookupTimeout)
}

// checkNoMembers checks that no pod and no PVC of an EtcdCluster exists. It retries a failed
// lookup until the timeout.
func checkNoMembers(ctx context.Context, kube kubernetes.Interface, interval, timeout time.Duration) error {
	var owned string
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if owned, err = findOwnedObject(ctx, kube); err == nil {
			return true, nil
		}
		klog.FromContext(ctx).Info("Looking for members of EtcdClusters failed", "err", err)
		if last == nil || ctx.Err() == nil {
			last = err // the timeout is not the cause
		}
		return false, nil
	})
	switch {
	case err != nil && last != nil:
		return fmt.Errorf("look for members of EtcdClusters before a new storage is used: %w", last)
	case err != nil:
		return err
	case owned != "":
		return fmt.Errorf("%w; one of them is %s", ErrStorageLost, owned)
	default:
		return nil
	}
}

// findOwnedObject returns the kind and name of an object of an EtcdCluster; empty if there is none.
func findOwnedObject(ctx context.Context, kube kubernetes.Interface) (string, error) {
	found := ""
	members := metav1.ListOptions{LabelSelector: resources.LabelApp + "=" + resources.AppName}
	for kind, list := range map[string]pager.ListPageFunc{
		"pod": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return kube.CoreV1().Pods(corev1.NamespaceAll).List(ctx, o)
		},
		"persistentvolumeclaim": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return kube.CoreV1().PersistentVolumeClaims(corev1.NamespaceAll).List(ctx, o)
		},
	} {
		err := pager.New(list).EachListItem(ctx, members, func(item runtime.Object) error {
			if object, ok := item.(metav1.Object); ok && found == "" && (isOwnedByCluster(object) || isDataOfCluster(object)) {
				found = kind + " " + object.GetNamespace() + "/" + object.GetName()
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("list each %s of members: %w", kind, err)
		}
	}
	return found, nil
}

// isDataOfCluster is true for a PVC that only the controller deletes, and that belongs to an EtcdCluster. It is all that
// Kubernetes has of a hibernated one. A PVC that stayed when its EtcdCluster was deleted proves none.
func isDataOfCluster(object metav1.Object) bool {
	_, isPVC := object.(*corev1.PersistentVolumeClaim)
	annotations := object.GetAnnotations()
	return isPVC && metav1.GetControllerOfNoCopy(object) == nil &&
		annotations[resources.AnnotationClusterUID] != "" && annotations[resources.AnnotationRetained] == ""
}

// isOwnedByCluster is true for an object that Kubernetes deletes with its EtcdCluster.
func isOwnedByCluster(object metav1.Object) bool {
	ref := metav1.GetControllerOf(object)
	if ref == nil {
		return false
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == v1beta2.SchemeGroupVersion.Group && ref.Kind == "EtcdCluster"
}
