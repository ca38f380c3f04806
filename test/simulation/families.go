// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The simulated Kubernetes is dual-stack, IPv4 first.
const primaryFamily, otherFamily = corev1.IPv4Protocol, corev1.IPv6Protocol

// admitService does to a service what the API does about families and addresses: it fills
// in what is not declared, gives a second address and takes it back, and refuses another
// first one. Old is nil for a service that is made.
func (s *store) admitService(service, old *corev1.Service) error {
	spec := &service.Spec
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{primaryFamily}
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if old != nil {
		// Who goes back to one family without a word about the second one gives that up.
		if single && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
			spec.IPFamilies = spec.IPFamilies[:1]
			spec.ClusterIPs = spec.ClusterIPs[:min(1, len(spec.ClusterIPs))]
		}
		if spec.IPFamilies[0] != old.Spec.IPFamilies[0] {
			return invalidFamilies(spec, "primary ipFamily can not be unset or changed")
		}
	}
	switch {
	case single && len(spec.IPFamilies) > 1:
		return invalidFamilies(spec, "must be dual-stack when multiple IP families are specified")
	case !single && len(spec.IPFamilies) == 1:
		second := otherFamily
		if spec.IPFamilies[0] == otherFamily {
			second = primaryFamily
		}
		spec.IPFamilies = append(slices.Clone(spec.IPFamilies), second)
	}
	return s.giveAddresses(spec, old)
}

// giveAddresses gives a service one address for each family, unless it is headless.
func (s *store) giveAddresses(spec *corev1.ServiceSpec, old *corev1.Service) error {
	if spec.ClusterIP == corev1.ClusterIPNone {
		spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return nil
	}
	if len(spec.ClusterIPs) > len(spec.IPFamilies) {
		return invalidFamilies(spec, "there are more addresses than families")
	}
	for _, family := range spec.IPFamilies[len(spec.ClusterIPs):] {
		prefix := map[corev1.IPFamily]string{primaryFamily: "10.96.0.", otherFamily: "fd00::"}[family]
		spec.ClusterIPs = append(slices.Clone(spec.ClusterIPs), prefix+strconv.Itoa(s.uids%250))
	}
	if old != nil && spec.ClusterIPs[0] != old.Spec.ClusterIPs[0] {
		return invalidFamilies(spec, "may not change once set")
	}
	spec.ClusterIP = spec.ClusterIPs[0]
	return nil
}

func invalidFamilies(spec *corev1.ServiceSpec, why string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "", field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilies"), spec.IPFamilies, why)})
}

// declareFamilies has the user ask for families of the service for clients.
func declareFamilies(s *v1beta2.ClusterSpec, which int) {
	const single, prefer, both = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	templates := []*v1beta2.ServiceTemplate{
		nil,
		{IPFamilies: []corev1.IPFamily{otherFamily}},
		{IPFamilyPolicy: ptr.To(prefer)},
		{IPFamilyPolicy: ptr.To(both), IPFamilies: []corev1.IPFamily{otherFamily, primaryFamily}},
		{IPFamilyPolicy: ptr.To(single)},
		{IPFamilyPolicy: ptr.To(both), IPFamilies: []corev1.IPFamily{primaryFamily}},
	}
	s.Services = &v1beta2.ServicesPolicy{Client: templates[which%len(templates)]}
}

// editFamilies has somebody give a service a second address, or take it.
func editFamilies(s *corev1.Service) {
	if len(s.Spec.IPFamilies) > 1 {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	} else {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
}

// goalFamilies says what is wrong with what is said of the service for clients.
func goalFamilies(cluster *v1beta2.EtcdCluster, client *corev1.Service) string {
	if cluster.Spec.Services == nil || cluster.Spec.Services.Client == nil {
		return ""
	}
	want := corev1.ConditionTrue
	if declared := cluster.Spec.Services.Client.IPFamilies; len(declared) > 0 && declared[0] != client.Spec.IPFamilies[0] {
		want = corev1.ConditionFalse
	}
	if fixed := resources.ClientServiceFixed(cluster, client); (fixed != "") != (want == corev1.ConditionFalse) {
		return "the family of the service for clients is declared otherwise, and the controller thinks: " + fixed
	}
	if !conditionIs(cluster, v1beta2.ClusterConditionServiceAsDeclared, want) {
		return "the status does not say whether the service for clients is as declared"
	}
	return ""
}
