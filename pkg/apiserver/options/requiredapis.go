// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/kubeapi"
)

// RequiredAPIs returns the APIs that this server watches with its flags. The tests in test/oldest
// compare them with the watches of a running server.
func (o *Options) RequiredAPIs() []kubeapi.RequiredAPI {
	var apis []kubeapi.RequiredAPI
	if o.Recommended.Admission != nil {
		apis = append(apis, o.pluginAPIs()...)
	}
	if o.Recommended.Features != nil && o.Recommended.Features.EnablePriorityAndFairness {
		apis = append(apis, kubeapi.RequiredAPI{
			Component: "PriorityAndFairness", GroupVersion: flowcontrolv1.SchemeGroupVersion,
			Resources: []string{"flowschemas", "prioritylevelconfigurations"}, DisableFlag: "--enable-priority-and-fairness=false",
		})
	}
	return apis
}

func (o *Options) pluginAPIs() []kubeapi.RequiredAPI {
	flags := o.Recommended.Admission
	registration := admissionregistrationv1.SchemeGroupVersion
	all := []kubeapi.RequiredAPI{
		{Component: lifecycle.PluginName, GroupVersion: corev1.SchemeGroupVersion, Resources: []string{"namespaces"}},
		{
			Component: mutatingpolicy.PluginName, GroupVersion: registration,
			Resources: []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
			// Kubernetes serves version v1 of it from 1.36 on. A plugin that a flag names is
			// required.
			Optional: !slices.Contains(flags.EnablePlugins, mutatingpolicy.PluginName),
		},
		{Component: mutatingwebhook.PluginName, GroupVersion: registration, Resources: []string{"mutatingwebhookconfigurations"}},
		{
			Component: validatingpolicy.PluginName, GroupVersion: registration,
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		},
		{Component: resourcequota.PluginName, GroupVersion: corev1.SchemeGroupVersion, Resources: []string{"resourcequotas"}},
		{Component: validatingwebhook.PluginName, GroupVersion: registration, Resources: []string{"validatingwebhookconfigurations"}},
	}
	var apis []kubeapi.RequiredAPI
	for _, api := range all {
		if !slices.Contains(flags.DisablePlugins, api.Component) {
			api.DisableFlag = "--disable-admission-plugins=" + api.Component
			apis = append(apis, api)
		}
	}
	return apis
}

// checkNoDefinitions ends the start while CustomResourceDefinitions serve the group.
func (o *Options) checkNoDefinitions(ctx context.Context) error {
	if o.Recommended.CoreAPI == nil {
		return nil
	}
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil && o.HasSelfIssuedCertificate() {
		return fmt.Errorf("%w: %w", ErrServingCertEnv, err)
	}
	if err != nil {
		return fmt.Errorf("look for CustomResourceDefinitions of the API group: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return kubeapi.CheckNoDefinitions(ctx, kube.Discovery().RESTClient(), o.clock, v1beta2.SchemeGroupVersion.Group, definitions...)
}

// definitions are the resources of the group that the original etcd-operator serves from
// CustomResourceDefinitions.
var definitions = []string{"etcdbackups", "etcdclusters", "etcdrestores"}

// checkRequiredAPIs checks which of the required APIs the kube-apiserver serves. It defers the
// plugins whose optional API is not served.
func (o *Options) checkRequiredAPIs(ctx context.Context) error {
	if o.Recommended.CoreAPI == nil {
		return nil
	}
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return fmt.Errorf("check which APIs the kube-apiserver serves: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client := kube.Discovery().RESTClient()
	apis := o.RequiredAPIs()
	notServed, err := kubeapi.Check(ctx, client, o.clock, apis)
	if err != nil {
		return err
	}
	registerMetrics()
	for _, api := range apis {
		if api.Optional {
			enforced.WithLabelValues(api.Component).Set(1)
		}
	}
	for _, api := range notServed {
		klog.FromContext(ctx).Info("Admission plugin is inactive until the kube-apiserver serves its API: its policies do not apply to EtcdClusters, EtcdBackups and EtcdRestores",
			"plugin", api.Component, "groupVersion", api.GroupVersion, "resources", api.Resources)
		o.deferred = newDeferredAdmission(api)
		o.Recommended.Admission.Decorators = append(o.deferred.decorators(), o.Recommended.Admission.Decorators...)
		go o.deferred.run(ctx, client, o.clock)
	}
	return nil
}
