// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Families of a dual-stack Kubernetes in which IPv4 is first.
const (
	PrimaryFamily = corev1.IPv4Protocol
	OtherFamily   = corev1.IPv6Protocol
)

// admitService treats the families and addresses of a service as the API does. It sets what
// is not declared, adds or removes a second address, and rejects a change of the first
// address. Old is nil for a new service.
func (s *Store) admitService(service, old *corev1.Service) error {
	spec := &service.Spec
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{PrimaryFamily}
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if old != nil {
		// Going back to one family without naming the second one gives that up.
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
		second := OtherFamily
		if spec.IPFamilies[0] == OtherFamily {
			second = PrimaryFamily
		}
		spec.IPFamilies = append(slices.Clone(spec.IPFamilies), second)
	}
	return s.giveAddresses(spec, old)
}

// giveAddresses gives a service one address for each family, unless it is headless.
func (s *Store) giveAddresses(spec *corev1.ServiceSpec, old *corev1.Service) error {
	if spec.ClusterIP == corev1.ClusterIPNone {
		spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return nil
	}
	if len(spec.ClusterIPs) > len(spec.IPFamilies) {
		return invalidFamilies(spec, "there are more addresses than families")
	}
	for _, family := range spec.IPFamilies[len(spec.ClusterIPs):] {
		prefix := map[corev1.IPFamily]string{PrimaryFamily: "10.96.0.", OtherFamily: "fd00::"}[family]
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
