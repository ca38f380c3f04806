// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/clientca"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/servingcert"
)

// errEtcdStopped ends a server whose storage is gone: a restart is the way back.
var errEtcdStopped = errors.New("the embedded etcd stopped")

// Run serves until the context ends. Things come up in the order in which they need
// each other, storage first, and go down in the reverse.
func (o *Options) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Get().GitVersion)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.EmbeddedEtcdDir != "" {
		etcd, err := embeddedetcd.Start(ctx, o.EmbeddedEtcdDir)
		if err != nil {
			return err
		}
		defer etcd.Stop()
		o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
		go func() {
			select {
			case <-etcd.Stopped():
				cancel(errEtcdStopped)
			case <-ctx.Done():
			}
		}()
	}

	certificate, err := o.startServingCert(ctx)
	if err != nil {
		return err
	}
	if err := o.confirmStorage(ctx); err != nil {
		return err
	}
	if err := o.confirmAPIs(ctx); err != nil {
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
	if err := server.Generic.PrepareRun().RunWithContext(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, errEtcdStopped) {
		return cause
	}
	return nil
}

// startServingCert returns a certificate that is kept valid until the context ends,
// or nil if the flags name one.
func (o *Options) startServingCert(ctx context.Context) (dynamiccertificates.CertKeyContentProvider, error) {
	if !o.SelfMadeCertificate() {
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

// loadClientCAs returns when the server can tell who connects to it.
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

// kubeConfig reads a file, or says how a pod reaches the kube-apiserver.
func kubeConfig(file string) (*rest.Config, error) {
	if file != "" {
		return clientcmd.BuildConfigFromFlags("", file)
	}
	return rest.InClusterConfig()
}
