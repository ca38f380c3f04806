// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// admissionInitializers gives the admission plugins their informers. The readiness of the server
// does not wait for informers of policy parameters, nor for those of a plugin whose API the
// kube-apiserver does not serve yet.
func (o *Options) admissionInitializers(c *server.RecommendedConfig) ([]admission.PluginInitializer, error) {
	if c.ClientConfig == nil || c.SharedInformerFactory == nil {
		return nil, nil
	}
	factory, err := newAdmissionInformers(c)
	if err != nil {
		return nil, err
	}
	initializers := []admission.PluginInitializer{factory, quotaInitializer{}}
	if o.deferred != nil {
		deferred, err := o.deferred.initializer(c, factory)
		if err != nil {
			return nil, err
		}
		initializers = append(initializers, deferred)
	}
	return initializers, nil
}

// quotaInitializer gives the plugin for ResourceQuotas an empty configuration, with which it
// counts the objects of every resource.
type quotaInitializer struct{}

// Initialize implements admission.PluginInitializer.
func (quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(generic.NewConfiguration(nil, nil))
	}
}

func newAdmissionInformers(c *server.RecommendedConfig) (*admissionInformers, error) {
	client, err := kubernetes.NewForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("client for policy parameters: %w", err)
	}
	return &admissionInformers{
		SharedInformerFactory: c.SharedInformerFactory, parameters: informers.NewSharedInformerFactory(client, 0),
	}, nil
}

// admissionInformers are the informers of the admission plugins. Those of policy parameters are
// separate from the informers that readiness waits for. A policy may name any kind as the kind
// of its parameters, also a policy for other API groups, and the server has no right to read
// most kinds. With common informers one such policy would make the whole API unavailable.
type admissionInformers struct {
	informers.SharedInformerFactory

	parameters informers.SharedInformerFactory
}

// ForResource implements informers.SharedInformerFactory. The plugins use it for parameters only:
// for everything else they use the typed methods.
func (f *admissionInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return f.parameters.ForResource(resource)
}

// Start implements informers.SharedInformerFactory.
func (f *admissionInformers) Start(stop <-chan struct{}) {
	f.SharedInformerFactory.Start(stop)
	f.parameters.Start(stop)
}

// Initialize implements admission.PluginInitializer.
func (f *admissionInformers) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok {
		wants.SetExternalKubeInformerFactory(f)
	}
}
