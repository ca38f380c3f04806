// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxFamilies is how many families of addresses there are.
const maxFamilies = 2

func validateServiceTemplate(service *v1beta2.ServiceTemplate, path *field.Path) field.ErrorList {
	errs := validateEnum(service.Type, path.Child("type"),
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	errs = append(errs, validateOwnedLabels(service.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(service.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateExposure(service, path)...)
	errs = append(errs, validateLoadBalancer(service, path)...)
	if distribution := service.TrafficDistribution; distribution != nil {
		errs = append(errs, validateEnum(*distribution, path.Child("trafficDistribution"),
			corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	if policy := service.IPFamilyPolicy; policy != nil {
		errs = append(errs, validateEnum(*policy, path.Child("ipFamilyPolicy"),
			corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
	}
	return append(errs, validateFamilies(service, path.Child("ipFamilies"))...)
}

// validateFamilies says what Kubernetes would say of a service with these families on
// every cluster; which families there are depends on the cluster.
func validateFamilies(service *v1beta2.ServiceTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	families := service.IPFamilies
	if len(families) > maxFamilies {
		return append(errs, field.TooMany(path, len(families), maxFamilies))
	}
	for i, family := range families {
		switch {
		case family != corev1.IPv4Protocol && family != corev1.IPv6Protocol:
			errs = append(errs, field.NotSupported(path.Index(i), family, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		case slices.Contains(families[:i], family):
			errs = append(errs, field.Duplicate(path.Index(i), family))
		}
	}
	policy := ptr.Deref(service.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(families) == maxFamilies && policy == corev1.IPFamilyPolicySingleStack {
		errs = append(errs, field.Invalid(path, families,
			"has two families, and ipFamilyPolicy is SingleStack, which it is by default: name one family, or set ipFamilyPolicy to PreferDualStack or RequireDualStack"))
	}
	return errs
}

// validateExposure checks what only a service that is reached from outside has.
func validateExposure(service *v1beta2.ServiceTemplate, path *field.Path) field.ErrorList {
	errs := validateEnum(service.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"),
		corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	if service.NodePort < 0 || service.NodePort > 65535 {
		errs = append(errs, field.Invalid(path.Child("nodePort"), service.NodePort, "must be between 1 and 65535, within the cluster's range of node ports"))
	}
	if service.Type == corev1.ServiceTypeNodePort || service.Type == corev1.ServiceTypeLoadBalancer {
		return errs
	}
	const outside = "may be set only where type is NodePort or LoadBalancer"
	if service.NodePort != 0 {
		errs = append(errs, forbidden(path.Child("nodePort"), outside))
	}
	if service.ExternalTrafficPolicy != "" {
		errs = append(errs, forbidden(path.Child("externalTrafficPolicy"), outside))
	}
	return errs
}

func validateLoadBalancer(service *v1beta2.ServiceTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if class := service.LoadBalancerClass; class != nil {
		errs = append(errs, metav1validation.ValidateLabelName(*class, path.Child("loadBalancerClass"))...)
	}
	for i, ranges := 0, service.LoadBalancerSourceRanges; i < len(ranges); i++ {
		errs = append(errs, utilvalidation.IsValidCIDR(path.Child("loadBalancerSourceRanges").Index(i), ranges[i])...)
	}
	if service.Type == corev1.ServiceTypeLoadBalancer {
		return errs
	}
	const balanced = "may be set only where type is LoadBalancer"
	if service.LoadBalancerClass != nil {
		errs = append(errs, forbidden(path.Child("loadBalancerClass"), balanced))
	}
	if len(service.LoadBalancerSourceRanges) > 0 {
		errs = append(errs, forbidden(path.Child("loadBalancerSourceRanges"), balanced))
	}
	return errs
}
