// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// wantsMoreFamilies is true of a template that asks for IPv6, or for both families,
// where Kubernetes might give IPv4 alone, or the other way round.
func wantsMoreFamilies(t *v1beta2.ServiceTemplate) bool {
	return len(t.IPFamilies) > 0 || ptr.Deref(t.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack) != corev1.IPFamilyPolicySingleStack
}

// repairFamilies puts the declared families of want into spec, that of a living service,
// as far as they can change: the first one stays for as long as the service exists. What
// is not declared is Kubernetes' own affair and stays as it is.
func repairFamilies(spec, want *corev1.ServiceSpec) {
	policy := want.IPFamilyPolicy
	if policy == nil && len(want.IPFamilies) > 0 {
		policy = ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	if policy == nil {
		return
	}
	single, fixed := *policy == corev1.IPFamilyPolicySingleStack, familyFixed(spec, want)
	if single && fixed {
		return // the second family, if there is one, may be the one that is wanted
	}
	spec.IPFamilyPolicy = policy
	switch {
	case fixed: // both come, in the order that the service has
	case len(want.IPFamilies) > len(spec.IPFamilies):
		spec.IPFamilies = slices.Clone(want.IPFamilies)
	case single && len(spec.IPFamilies) > 1:
		spec.IPFamilies = slices.Clone(spec.IPFamilies[:1])
		spec.ClusterIPs = slices.Clone(spec.ClusterIPs[:min(1, len(spec.ClusterIPs))])
	}
}

// familyFixed is true if the first of the declared families is not the one that a living
// service has.
func familyFixed(live, want *corev1.ServiceSpec) bool {
	return len(want.IPFamilies) > 0 && len(live.IPFamilies) > 0 && live.IPFamilies[0] != want.IPFamilies[0]
}

// ClientServiceFixed says what of the user's template the living client Service
// cannot follow, and what can be done; "" if it can follow it all.
func ClientServiceFixed(c *v1beta2.EtcdCluster, live *corev1.Service) string {
	want := ClientService(c)
	var keeps []string
	if familyFixed(&live.Spec, &want.Spec) {
		keeps = append(keeps, fmt.Sprintf("the family %s of its clusterIP, and ipFamilies begins with %s", live.Spec.IPFamilies[0], want.Spec.IPFamilies[0]))
	}
	balanced := live.Spec.Type == corev1.ServiceTypeLoadBalancer && want.Spec.Type == corev1.ServiceTypeLoadBalancer
	if has, desired := ptr.Deref(live.Spec.LoadBalancerClass, ""), ptr.Deref(want.Spec.LoadBalancerClass, ""); balanced && has != desired {
		keeps = append(keeps, fmt.Sprintf("loadBalancerClass %q, and %q is declared", has, desired))
	}
	if len(keeps) == 0 {
		return ""
	}
	return "service " + live.Name + " keeps for as long as it exists " + strings.Join(keeps, "; and ") +
		"; declare what it has, or delete the service, which is then made again, with other addresses"
}
