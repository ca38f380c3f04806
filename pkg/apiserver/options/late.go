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

// latePeriod is how often a kube-apiserver is asked again for an API that it did not serve.
const latePeriod = 30 * time.Second

var enforced = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Namespace: "etcd_operator", Subsystem: "apiserver", Name: "admission_plugin_enforced",
	Help:           "1 if the admission plugin holds for the objects of this server, 0 while the kube-apiserver does not serve its API.",
	StabilityLevel: metrics.ALPHA,
}, []string{"plugin"})

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(enforced) })

// lateAdmission holds back the admission plugin for MutatingAdmissionPolicies while the
// kube-apiserver does not serve them: the plugin would refuse every write, and the server
// would never become ready. When Kubernetes is upgraded the plugin comes into force without
// a restart.
type lateAdmission struct {
	need kubeapi.Need
	// policies are the informers of the plugin; initialized is closed when they are there.
	policies    informers.SharedInformerFactory
	initialized chan struct{}
	inForce     atomic.Bool
}

func newLateAdmission(need kubeapi.Need) *lateAdmission {
	enforced.WithLabelValues(need.Part).Set(0)
	return &lateAdmission{need: need, initialized: make(chan struct{})}
}

// initializer gives the plugin informers of its own, which are not started yet.
func (l *lateAdmission) initializer(c *server.RecommendedConfig, others informers.SharedInformerFactory) (admission.PluginInitializer, error) {
	client, err := kubernetes.NewForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("client for policies: %w", err)
	}
	l.policies = informers.NewSharedInformerFactory(client, 0)
	return &lateInitializer{late: l, informers: lateInformers{SharedInformerFactory: others, policies: l.policies}}, nil
}

// decorators hide the plugin from requests until it is in force.
func (l *lateAdmission) decorators() admission.Decorators {
	return admission.Decorators{admission.DecoratorFunc(func(handler admission.Interface, name string) admission.Interface {
		mutates, ok := handler.(admission.MutationInterface)
		if name != l.need.Part || !ok {
			return handler
		}
		// The plugin has asked for all its informers by now.
		close(l.initialized)
		return &latePlugin{MutationInterface: mutates, inForce: &l.inForce}
	})}
}

// run puts the plugin into force when its API is served and its policies are known. It
// returns then, or when the context ends.
func (l *lateAdmission) run(ctx context.Context, client rest.Interface, clock clock.Clock) {
	select {
	case <-ctx.Done():
		return
	case <-l.initialized:
	}
	if err := kubeapi.AwaitServed(ctx, client, clock, l.need, latePeriod); err != nil {
		return
	}
	l.policies.Start(ctx.Done())
	for _, synced := range l.policies.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return
		}
	}
	l.inForce.Store(true)
	enforced.WithLabelValues(l.need.Part).Set(1)
	klog.FromContext(ctx).Info("The kube-apiserver serves the API of an admission plugin now: its policies hold from here on", "plugin", l.need.Part)
}

type lateInitializer struct {
	late      *lateAdmission
	informers lateInformers
}

// Initialize implements admission.PluginInitializer.
func (i *lateInitializer) Initialize(plugin admission.Interface) {
	if policies, ok := plugin.(*mutatingpolicy.Plugin); ok {
		policies.SetExternalKubeInformerFactory(i.informers)
	}
}

// lateInformers are informers of which those of policies are started later.
type lateInformers struct {
	informers.SharedInformerFactory

	policies informers.SharedInformerFactory
}

// Admissionregistration implements informers.SharedInformerFactory.
func (f lateInformers) Admissionregistration() admissionregistration.Interface {
	return f.policies.Admissionregistration()
}

// latePlugin takes part in no request until the plugin is in force.
type latePlugin struct {
	admission.MutationInterface

	inForce *atomic.Bool
}

// Handles implements admission.Interface.
func (p *latePlugin) Handles(operation admission.Operation) bool {
	return p.inForce.Load() && p.MutationInterface.Handles(operation)
}
