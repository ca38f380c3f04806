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

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/kubeapi"
)

// Needs are the APIs that this server watches with its present flags. The tests in test/oldest
// compare them with what it does watch.
func (o *Options) Needs() []kubeapi.Need {
	var needs []kubeapi.Need
	if o.Recommended.Admission != nil {
		needs = append(needs, o.admissionNeeds()...)
	}
	if o.Recommended.Features != nil && o.Recommended.Features.EnablePriorityAndFairness {
		needs = append(needs, kubeapi.Need{
			Part: "PriorityAndFairness", GroupVersion: flowcontrolv1.SchemeGroupVersion,
			Resources: []string{"flowschemas", "prioritylevelconfigurations"}, Off: "--enable-priority-and-fairness=false",
		})
	}
	return needs
}

func (o *Options) admissionNeeds() []kubeapi.Need {
	flags := o.Recommended.Admission
	registration := admissionregistrationv1.SchemeGroupVersion
	all := []kubeapi.Need{
		{Part: lifecycle.PluginName, GroupVersion: corev1.SchemeGroupVersion, Resources: []string{"namespaces"}},
		{
			Part: mutatingpolicy.PluginName, GroupVersion: registration,
			Resources: []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
			// Kubernetes serves version v1 of it from 1.36 on. A plugin that a flag names is
			// not left out.
			Optional: !slices.Contains(flags.EnablePlugins, mutatingpolicy.PluginName),
		},
		{Part: mutatingwebhook.PluginName, GroupVersion: registration, Resources: []string{"mutatingwebhookconfigurations"}},
		{
			Part: validatingpolicy.PluginName, GroupVersion: registration,
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		},
		{Part: resourcequota.PluginName, GroupVersion: corev1.SchemeGroupVersion, Resources: []string{"resourcequotas"}},
		{Part: validatingwebhook.PluginName, GroupVersion: registration, Resources: []string{"validatingwebhookconfigurations"}},
	}
	var needs []kubeapi.Need
	for _, need := range all {
		if !slices.Contains(flags.DisablePlugins, need.Part) {
			need.Off = "--disable-admission-plugins=" + need.Part
			needs = append(needs, need)
		}
	}
	return needs
}

// confirmAPIs asks the kube-apiserver which of the needed APIs it serves. What it says that
// it does not serve is left out for as long as that is so.
func (o *Options) confirmAPIs(ctx context.Context) error {
	if o.Recommended.CoreAPI == nil {
		return nil
	}
	config, err := kubeConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return fmt.Errorf("find out which APIs the kube-apiserver serves: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client := kube.Discovery().RESTClient()
	needs := o.Needs()
	unmet, err := kubeapi.Await(ctx, client, o.clock, needs)
	if err != nil {
		return err
	}
	registerMetrics()
	for _, need := range needs {
		if need.Optional {
			enforced.WithLabelValues(need.Part).Set(1)
		}
	}
	for _, need := range unmet {
		klog.FromContext(ctx).Info("Left out until the kube-apiserver serves its API: policies of this kind do not hold for EtcdClusters, EtcdBackups and EtcdRestores",
			"plugin", need.Part, "groupVersion", need.GroupVersion, "resources", need.Resources)
		o.late = newLateAdmission(need)
		o.Recommended.Admission.Decorators = append(o.late.decorators(), o.Recommended.Admission.Decorators...)
		go o.late.run(ctx, client, o.clock)
	}
	return nil
}
