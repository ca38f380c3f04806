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

// admissionInitializers gives admission informers of which those of parameters do not count
// for the server's readiness, nor those of a plugin whose API the kube-apiserver does not
// serve yet.
func (o *Options) admissionInitializers(c *server.RecommendedConfig) ([]admission.PluginInitializer, error) {
	if c.ClientConfig == nil || c.SharedInformerFactory == nil {
		return nil, nil
	}
	apart, err := newParametersApart(c)
	if err != nil {
		return nil, err
	}
	initializers := []admission.PluginInitializer{apart, quotaInitializer{}}
	if o.late != nil {
		late, err := o.late.initializer(c, apart)
		if err != nil {
			return nil, err
		}
		initializers = append(initializers, late)
	}
	return initializers, nil
}

// quotaInitializer has the plugin for ResourceQuotas count objects, which it does for every
// resource without being told how.
type quotaInitializer struct{}

// Initialize implements admission.PluginInitializer.
func (quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(generic.NewConfiguration(nil, nil))
	}
}

func newParametersApart(c *server.RecommendedConfig) (*parametersApart, error) {
	client, err := kubernetes.NewForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("client for the parameters of policies: %w", err)
	}
	return &parametersApart{
		SharedInformerFactory: c.SharedInformerFactory, parameters: informers.NewSharedInformerFactory(client, 0),
	}, nil
}

// parametersApart are the informers of admission. A policy of the cluster may name any kind
// as that of its parameters, also one that is about other groups altogether; the server may
// not read most of them. Were their informers among those that readiness waits for, one
// such policy would take the whole API out of service.
type parametersApart struct {
	informers.SharedInformerFactory

	parameters informers.SharedInformerFactory
}

// ForResource implements informers.SharedInformerFactory. Only parameters are asked for so:
// everything else is known by its type.
func (f *parametersApart) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return f.parameters.ForResource(resource)
}

// Start implements informers.SharedInformerFactory.
func (f *parametersApart) Start(stop <-chan struct{}) {
	f.SharedInformerFactory.Start(stop)
	f.parameters.Start(stop)
}

// Initialize implements admission.PluginInitializer.
func (f *parametersApart) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok {
		wants.SetExternalKubeInformerFactory(f)
	}
}
