// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

// Config applies the options. A serving certificate that the server made itself is
// given, or nil.
func (o *Options) Config(certificate dynamiccertificates.CertKeyContentProvider) (*apiserver.Config, error) {
	config, err := apiserver.NewConfig()
	if err != nil {
		return nil, err
	}
	config.DefaultEtcdVersion = o.DefaultEtcdVersion
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
	if err := o.applyStorage(config); err != nil {
		return nil, err
	}
	if err := o.applyAuthorization(config); err != nil {
		return nil, err
	}
	if err := applyKubernetes(config); err != nil {
		return nil, err
	}
	return config, nil
}

// applyKubernetes makes the client that finds the pods of clusters. It has no limit of
// its own: how many clusters are asked at once is limited, and the kube-apiserver
// protects itself.
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

// applyStorage replaces the storage that the recommended options chose. Theirs
// ignores the media type and always keeps JSON.
func (o *Options) applyStorage(config *apiserver.Config) error {
	storage := o.Recommended.Etcd.StorageConfig
	storage.StorageObjectCountTracker = config.Generic.StorageObjectCountTracker
	storage.Transport.TracerProvider = config.Generic.TracerProvider
	if selector := config.Generic.EgressSelector; selector != nil {
		storage.Transport.EgressLookup = selector.Lookup
	}
	factory := kind.NewStorageFactory(storage, o.Recommended.Etcd.DefaultStorageMediaType,
		config.Scheme, config.Codecs, v1beta2.SchemeGroupVersion)
	// The health checks are there from the first time.
	again := *o.Recommended.Etcd
	again.SkipHealthEndpoints = true
	if err := again.ApplyWithStorageFactoryTo(factory, &config.Generic.Config); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}
