// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/kubeapi"
)

// servedCheckPeriod is how often the server checks whether the kube-apiserver serves an API now.
const servedCheckPeriod = 30 * time.Second

var enforced = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Namespace: "etcd_operator", Subsystem: "apiserver", Name: "admission_plugin_enforced",
	Help:           "1 if the admission plugin is active for the objects of this server; 0 while the kube-apiserver does not serve its API.",
	StabilityLevel: metrics.ALPHA,
}, []string{"plugin"})

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(enforced) })

// deferredAdmission keeps the admission plugin for MutatingAdmissionPolicies inactive while the
// kube-apiserver does not serve them. An active plugin would reject every write, and the server
// would never become ready. After an upgrade of Kubernetes the plugin becomes active without a
// restart.
type deferredAdmission struct {
	api kubeapi.RequiredAPI
	// policies are the informers of the plugin; initialized is closed when the plugin has requested them.
	policies    informers.SharedInformerFactory
	initialized chan struct{}
	active      atomic.Bool
}

func newDeferredAdmission(api kubeapi.RequiredAPI) *deferredAdmission {
	enforced.WithLabelValues(api.Component).Set(0)
	return &deferredAdmission{api: api, initialized: make(chan struct{})}
}

// initializer gives the plugin separate informers, which run starts.
func (l *deferredAdmission) initializer(c *server.RecommendedConfig, others informers.SharedInformerFactory) (admission.PluginInitializer, error) {
	client, err := kubernetes.NewForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("client for policies: %w", err)
	}
	l.policies = informers.NewSharedInformerFactory(client, 0)
	return &deferredInitializer{deferred: l, informers: deferredInformers{SharedInformerFactory: others, policies: l.policies}}, nil
}

// decorators hide the plugin from requests until it is active.
func (l *deferredAdmission) decorators() admission.Decorators {
	return admission.Decorators{admission.DecoratorFunc(func(handler admission.Interface, name string) admission.Interface {
		mutates, ok := handler.(admission.MutationInterface)
		if name != l.api.Component || !ok {
			return handler
		}
		// The plugin has requested all its informers by now.
		close(l.initialized)
		return &deferredPlugin{MutationInterface: mutates, active: &l.active}
	})}
}

// run activates the plugin when the kube-apiserver serves its API and its policies are read. It
// returns then, or when the context ends.
func (l *deferredAdmission) run(ctx context.Context, client rest.Interface, clock clock.Clock) {
	select {
	case <-ctx.Done():
		return
	case <-l.initialized:
	}
	if err := kubeapi.WaitUntilServed(ctx, client, clock, l.api, servedCheckPeriod); err != nil {
		return
	}
	l.policies.Start(ctx.Done())
	for _, synced := range l.policies.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return
		}
	}
	l.active.Store(true)
	enforced.WithLabelValues(l.api.Component).Set(1)
	klog.FromContext(ctx).Info("Admission plugin activated: the kube-apiserver serves its API now", "plugin", l.api.Component)
}

type deferredInitializer struct {
	deferred  *deferredAdmission
	informers deferredInformers
}

// Initialize implements admission.PluginInitializer.
func (i *deferredInitializer) Initialize(plugin admission.Interface) {
	if policies, ok := plugin.(*mutatingpolicy.Plugin); ok {
		policies.SetExternalKubeInformerFactory(i.informers)
	}
}

// deferredInformers start the informers of policies later than the others.
type deferredInformers struct {
	informers.SharedInformerFactory

	policies informers.SharedInformerFactory
}

// Admissionregistration implements informers.SharedInformerFactory.
func (f deferredInformers) Admissionregistration() admissionregistration.Interface {
	return f.policies.Admissionregistration()
}

// deferredPlugin handles no request until the plugin is active.
type deferredPlugin struct {
	admission.MutationInterface

	active *atomic.Bool
}

// Handles implements admission.Interface.
func (p *deferredPlugin) Handles(operation admission.Operation) bool {
	return p.active.Load() && p.MutationInterface.Handles(operation)
}
