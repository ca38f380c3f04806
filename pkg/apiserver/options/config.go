// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	storagefactory "k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/sharing"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Config applies the options. The certificate is the one that the server has issued itself; nil
// if flags name the files of a certificate.
func (o *Options) Config(certificate dynamiccertificates.CertKeyContentProvider) (*apiserver.Config, error) {
	config, err := apiserver.NewConfig()
	if err != nil {
		return nil, err
	}
	config.DefaultEtcdVersion = o.DefaultEtcdVersion
	if o.embedded != nil {
		config.IsStorageFull = o.embedded.IsFull
	}
	generic := config.Generic
	if err := o.ServerRun.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	if err := o.Recommended.ApplyTo(generic); err != nil {
		return nil, err
	}
	if certificate != nil {
		generic.SecureServing.Cert = certificate
	}
	if err := o.applyAuthorization(config); err != nil {
		return nil, err
	}
	if err := o.applyStorage(config); err != nil {
		return nil, err
	}
	if err := applyKubernetes(config); err != nil {
		return nil, err
	}
	return config, nil
}

// applyKubernetes creates the client that reads the pods of clusters. It has no rate limit: the
// number of clusters that are probed at the same time is limited, and priority and fairness
// protects the kube-apiserver.
func applyKubernetes(config *apiserver.Config) error {
	if config.Generic.ClientConfig == nil {
		return nil
	}
	client := rest.CopyConfig(config.Generic.ClientConfig)
	client.QPS = -1
	client.ContentType = runtime.ContentTypeProtobuf
	client.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(client)
	if err != nil {
		return fmt.Errorf("client for the kube-apiserver: %w", err)
	}
	config.Kubernetes = kube
	return nil
}

// applyStorage replaces the storage of the recommended options, which ignores
// --storage-media-type, encodes every object as JSON and uses other keys.
func (o *Options) applyStorage(config *apiserver.Config) error {
	backend := o.Recommended.Etcd.StorageConfig
	backend.StorageObjectCountTracker = config.Generic.StorageObjectCountTracker
	backend.Transport.TracerProvider = config.Generic.TracerProvider
	if selector := config.Generic.EgressSelector; selector != nil {
		backend.Transport.EgressLookup = selector.Lookup
	}
	factory := storage.NewFactory(backend, o.Recommended.Etcd.DefaultStorageMediaType,
		config.Scheme, config.Codecs, v1beta2.SchemeGroupVersion)
	// The recommended options have added the health checks already.
	etcd := *o.Recommended.Etcd
	etcd.SkipHealthEndpoints = true
	if err := etcd.ApplyWithStorageFactoryTo(factory, &config.Generic.Config); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	metrics.SetStorageMonitorGetter(storage.Monitors(factory.Configs, storagefactory.CreateMonitor, config.Generic.DrainedNotify()))
	getter := config.Generic.RESTOptionsGetter
	if etcd.EnableWatchCache && len(etcd.WatchCacheSizes) == 0 {
		getter = sharing.WatchCaches(getter)
	}
	budget := storage.Budget{
		Bytes: o.NamespaceWriteBudget.Value(), Objects: o.NamespaceObjectLimit, Clock: o.clock, MayExceed: mayExceed(config.DelegatedAuthorizer),
	}
	config.Generic.RESTOptionsGetter = storage.LimitWrites(storage.RetryUnavailable(getter, o.storageGuard), budget)
	return nil
}

// neverGranted is a verb that no role names: a user that has it has every verb.
const neverGranted = "granted-to-nothing"

// mayExceed asks for the right to write beyond the limits of a namespace. It must hold in all namespaces: many tenants have
// every verb in their own. It must be granted by its name, but for the administrators of the group system:masters: tools of
// GitOps that have every verb carry out what tenants commit. The authorizer remembers the responses. Without an
// authorizer the limits hold for all users.
func mayExceed(delegated authorizer.Authorizer) func(context.Context, schema.GroupResource, string) bool {
	checker := rights.Checker{Authorizer: delegated}
	return func(ctx context.Context, resource schema.GroupResource, verb string) bool {
		if delegated == nil {
			return false
		}
		right := rights.Right{Verb: verb, Group: resource.Group, Resource: resource.Resource, Everywhere: true}
		has, _, err := checker.Has(ctx, right)
		if u, known := request.UserFrom(ctx); err == nil && has && !(known && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)) {
			var every bool
			right.Verb = neverGranted
			every, _, err = checker.Has(ctx, right)
			has = !every
		}
		if err != nil {
			klog.FromContext(ctx).Info("Cannot ask whether the user may exceed the limits of a namespace; the limits hold", "reason", err)
		}
		return has && err == nil
	}
}
