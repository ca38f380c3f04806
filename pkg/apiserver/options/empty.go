// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
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
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ErrStorageLost is a storage that is new although EtcdClusters were stored before. If the
// server offered it, garbage collection would delete the pods and Services of these clusters.
var ErrStorageLost = errors.New("the storage is empty, and pods of EtcdClusters exist, which Kubernetes deletes if the EtcdClusters do not exist: " +
	"bring the API's own data back, or, if the pods may go, set --allow-empty-storage; PVCs stay")

const (
	// askAgain is how often Kubernetes is asked that does not answer, and askFor how long:
	// the rights to ask may be granted after the server was started.
	askAgain = time.Second
	askFor   = time.Minute
	// begunKey, below the prefix of all objects, is written when a storage begins to be
	// used. One without objects may have had some that were deleted a moment ago, whose pods
	// only wait for this server to say so.
	begunKey = "begun"
	// storagePatience is how long the storage may take to answer.
	storagePatience = 30 * time.Second
)

// confirmStorage makes sure that the storage is the one in which the EtcdClusters are that
// Kubernetes knows members of, or that of nobody yet.
func (o *Options) confirmStorage(ctx context.Context) error {
	to, err := o.storageTransport()
	if err != nil {
		return err
	}
	client, err := storageClient(to)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	prefix := path.Join("/", o.Recommended.Etcd.StorageConfig.Prefix) + "/"
	used, begun, err := storageUse(ctx, client, prefix)
	switch {
	case err != nil:
		return fmt.Errorf("look into the storage: %w", err)
	case begun:
		return nil
	case !used && !o.AllowEmptyStorage:
		if err := o.confirmNewStorage(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	if _, err := client.Put(ctx, prefix+begunKey, ""); err != nil {
		return fmt.Errorf("note that the storage is used: %w", err)
	}
	return nil
}

// storageUse says whether anything is stored, and whether a server has noted its use.
func storageUse(ctx context.Context, client *clientv3.Client, prefix string) (used, begun bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	response, err := client.Txn(ctx).Then(
		clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
		clientv3.OpGet(prefix+begunKey, clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return false, false, err
	}
	return response.Responses[0].GetResponseRange().Count > 0, response.Responses[1].GetResponseRange().Count > 0, nil
}

// storageTransport is how the server itself reaches its storage, the egress selector included.
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

// storageClient connects to the storage as the server itself does.
func storageClient(to storagebackend.TransportConfig) (*clientv3.Client, error) {
	config := clientv3.Config{Endpoints: to.ServerList, Logger: zap.NewNop()}
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
			config.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
					address = parsed.Host
				}
				return dial(ctx, "tcp", address)
			})}
		}
	}
	return clientv3.New(config)
}

// confirmNewStorage makes sure that a storage without objects is that of nobody yet:
// Kubernetes must know of no pod and no claim that belongs to an EtcdCluster.
func (o *Options) confirmNewStorage(ctx context.Context) error {
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return fmt.Errorf("find out whether there are members of EtcdClusters before a new storage is made: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return confirmNobodysStorage(ctx, kube, askAgain, askFor)
}

func confirmNobodysStorage(ctx context.Context, kube kubernetes.Interface, again, patience time.Duration) error {
	var owned string
	var last error
	err := wait.PollUntilContextTimeout(ctx, again, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		if owned, err = firstOwned(ctx, kube); err == nil {
			return true, nil
		}
		klog.FromContext(ctx).Info("Cannot tell yet whether the storage may be new", "err", err)
		if last == nil || ctx.Err() == nil {
			last = err // the end of the patience is not why
		}
		return false, nil
	})
	switch {
	case err != nil && last != nil:
		return fmt.Errorf("find out whether there are members of EtcdClusters before a new storage is made: %w", last)
	case err != nil:
		return err
	case owned != "":
		return fmt.Errorf("%w; such as %s", ErrStorageLost, owned)
	default:
		return nil
	}
}

// firstOwned names something that belongs to an EtcdCluster; empty if there is nothing.
func firstOwned(ctx context.Context, kube kubernetes.Interface) (string, error) {
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
			if object, ok := item.(metav1.Object); ok && found == "" && ownedByCluster(object) {
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

// ownedByCluster is true of what goes with an EtcdCluster.
func ownedByCluster(object metav1.Object) bool {
	ref := metav1.GetControllerOf(object)
	if ref == nil {
		return false
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == v1beta2.SchemeGroupVersion.Group && ref.Kind == "EtcdCluster"
}
