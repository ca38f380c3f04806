// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/clientca"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/servingcert"
)

// errEtcdStopped ends a server whose embedded etcd has stopped, so that Kubernetes restarts it.
var errEtcdStopped = errors.New("the embedded etcd stopped")

// Run serves until the context ends. The steps of the start run in the order in which they need
// each other:
//
//   - The embedded etcd starts first: every later step reads the storage.
//   - CustomResourceDefinitions of the group end the server before it touches its APIService,
//     which has the name of the one that Kubernetes keeps for these definitions.
//   - The serving certificate comes before the preflight checks. It waits for the kube-apiserver
//     without a limit, but the check of the storage stops after memberLookupTimeout. In the
//     other order the server would end when it starts before the kube-apiserver.
//   - The preflight checks come before everything that serves or watches. So no backup is made of
//     an empty storage that the server must not use.
//   - The guard of the storage begins with the check: the storage may be replaced at any time after it.
//   - The CAs of clients are loaded before the server listens.
func (o *Options) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopEtcd, err := o.startEmbeddedEtcd(ctx, cancel)
	if err != nil {
		return err
	}
	defer stopEtcd()
	if err := o.checkNoDefinitions(ctx); err != nil {
		return err
	}
	certificate, err := o.startServingCert(ctx)
	if err != nil {
		return err
	}
	stopGuard, err := o.startStorageGuard(ctx, cancel)
	if err != nil {
		return err
	}
	defer stopGuard()
	if o.EmbeddedEtcdBackupAddress != "" {
		if err := o.embedded.ServeBackups(ctx, o.EmbeddedEtcdBackupAddress, o.EmbeddedEtcdBackupCertDir); err != nil {
			return err
		}
	}
	if err := o.checkRequiredAPIs(ctx); err != nil {
		return err
	}
	config, err := o.Config(certificate)
	if err != nil {
		return err
	}
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	if err := o.loadClientCAs(ctx, config.Generic.SecureServing); err != nil {
		return err
	}
	if err := untilReplaced(ctx, server.Generic.PrepareRun().RunWithContext); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, errEtcdStopped) {
		return cause
	}
	return nil
}

// registerStorageMetrics is used once: a registry takes each metric once, and a test runs several servers.
var registerStorageMetrics sync.Once

// startEmbeddedEtcd starts the etcd of --embedded-etcd-dir, if the flag is set, and makes it the
// storage. If etcd stops by itself, it cancels the context with errEtcdStopped.
func (o *Options) startEmbeddedEtcd(ctx context.Context, cancel context.CancelCauseFunc) (stop func(), err error) {
	if o.EmbeddedEtcdDir == "" {
		return func() {}, nil
	}
	etcd, err := embeddedetcd.Start(ctx, o.EmbeddedEtcdDir)
	if err != nil {
		return nil, err
	}
	o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
	o.embedded = etcd
	registerStorageMetrics.Do(func() { legacyregistry.CustomMustRegister(etcd.Metrics()) })
	go func() {
		select {
		case <-etcd.Stopped():
			cancel(errEtcdStopped)
		case <-ctx.Done():
		}
	}()
	return etcd.Stop, nil
}

// startStorageGuard checks the storage once, and then goes on checking that it stays the same until the context ends.
func (o *Options) startStorageGuard(ctx context.Context, cancel context.CancelCauseFunc) (stop func(), err error) {
	client, err := o.connectStorage()
	if err != nil {
		return nil, err
	}
	if err := o.checkStorage(ctx, client); err != nil {
		_ = client.Close()
		return nil, err
	}
	guard := &storageGuard{clock: o.clock, end: cancel, isInUse: func(ctx context.Context) (bool, error) { return o.isStorageInUse(ctx, client) }}
	o.storageGuard = guard
	go guard.run(ctx)
	return func() { _ = client.Close() }, nil
}

// startServingCert returns a certificate that is renewed until the context ends; nil if flags
// name the files of a certificate.
func (o *Options) startServingCert(ctx context.Context) (dynamiccertificates.CertKeyContentProvider, error) {
	if !o.HasSelfIssuedCertificate() {
		return nil, nil
	}
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrServingCertEnv, err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	apiServices, err := aggregator.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	manager := servingcert.NewManager(servingcert.Config{
		Namespace:  o.ServingCertNamespace,
		Service:    o.ServingCertService,
		Secret:     o.ServingCertSecret,
		APIService: v1beta2.SchemeGroupVersion.Version + "." + v1beta2.SchemeGroupVersion.Group,
	}, kube, apiServices, clock.RealClock{})
	if err := manager.Start(ctx); err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	go manager.Run(ctx)
	return manager.Provider(), nil
}

// loadClientCAs returns when the CAs that verify client certificates are loaded.
func (o *Options) loadClientCAs(ctx context.Context, serving *genericapiserver.SecureServingInfo) error {
	authentication := o.Recommended.Authentication
	var keys []string
	if !authentication.SkipInClusterLookup {
		keys = clientca.Keys(authentication.ClientCert.ClientCA != "", authentication.RequestHeader.ClientCAFile != "")
	}
	config, err := kubeConfig(authentication.RemoteKubeConfigFile)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return clientca.Start(ctx, serving, kube, keys)
}

// kubeConfig reads the file; without a file it returns the configuration of a pod.
func kubeConfig(file string) (*rest.Config, error) {
	if file != "" {
		return clientcmd.BuildConfigFromFlags("", file)
	}
	return rest.InClusterConfig()
}
