// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func validateScheduling(pod *v1beta2.PodPolicy, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(pod.NodeSelector, path.Child("nodeSelector"))
	for i := range pod.Tolerations {
		errs = append(errs, validateToleration(&pod.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	if pod.Affinity != nil {
		errs = append(errs, validateAffinity(pod.Affinity, path.Child("affinity"))...)
	}
	return append(errs, validateSpread(pod.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
}

func validateToleration(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	errs := validateEnum(toleration.Effect, path.Child("effect"),
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	errs = append(errs, validateEnum(toleration.Operator, path.Child("operator"),
		corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)...)
	exists := toleration.Operator == corev1.TolerationOpExists
	if toleration.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
	} else if !exists {
		errs = append(errs, invalid(path.Child("operator"), string(toleration.Operator), "must be Exists where key is empty; name a key, or tolerate every taint with Exists"))
	}
	if exists && toleration.Value != "" {
		errs = append(errs, invalid(path.Child("value"), toleration.Value, "must be empty where operator is Exists"))
	} else {
		errs = append(errs, reasons(path.Child("value"), toleration.Value, utilvalidation.IsValidLabelValue(toleration.Value))...)
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, forbidden(path.Child("tolerationSeconds"), "may be set only where effect is NoExecute"))
	}
	return errs
}

func validateAffinity(affinity *corev1.Affinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if node := affinity.NodeAffinity; node != nil {
		errs = append(errs, validateNodeAffinity(node, path.Child("nodeAffinity"))...)
	}
	if pod := affinity.PodAffinity; pod != nil {
		errs = append(errs, validatePodTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution,
			pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		errs = append(errs, validatePodTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution,
			pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

func validateNodeAffinity(affinity *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(required.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(at, "must have at least one term, because none matches no node"))
		}
		for i := range required.NodeSelectorTerms {
			errs = append(errs, validateNodeTerm(&required.NodeSelectorTerms[i], at.Index(i))...)
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, validateWeight(preferred.Weight, at.Child("weight"))...)
		errs = append(errs, validateNodeTerm(&preferred.Preference, at.Child("preference"))...)
	}
	return errs
}

func validateNodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(term.MatchExpressions[i].Key, at.Child("key"))...)
		errs = append(errs, validateNodeRequirement(&term.MatchExpressions[i], at)...)
	}
	for i := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		if key := term.MatchFields[i].Key; key != metav1.ObjectNameField {
			errs = append(errs, field.NotSupported(at.Child("key"), key, []string{metav1.ObjectNameField}))
		}
		errs = append(errs, validateNodeRequirement(&term.MatchFields[i], at)...)
	}
	return errs
}

func validateNodeRequirement(requirement *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	at := path.Child("values")
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			return field.ErrorList{field.Required(at, "must be given where operator is In or NotIn")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			return field.ErrorList{forbidden(at, "may not be given where operator is Exists or DoesNotExist")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(requirement.Values) != 1 {
			return field.ErrorList{field.Required(at, "must be a single number where operator is Gt or Lt")}
		}
	default:
		return field.ErrorList{field.NotSupported(path.Child("operator"), requirement.Operator, []corev1.NodeSelectorOperator{
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
		})}
	}
	return nil
}

func validatePodTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range required {
		errs = append(errs, validatePodTerm(&required[i], path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))...)
	}
	for i := range preferred {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, validateWeight(preferred[i].Weight, at.Child("weight"))...)
		errs = append(errs, validatePodTerm(&preferred[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := validateTopologyKey(term.TopologyKey, path.Child("topologyKey"))
	errs = append(errs, validateSelector(term.LabelSelector, path.Child("labelSelector"))...)
	errs = append(errs, validateSelector(term.NamespaceSelector, path.Child("namespaceSelector"))...)
	for i, namespace := range term.Namespaces {
		errs = append(errs, reasons(path.Child("namespaces").Index(i), namespace, utilvalidation.IsDNS1123Label(namespace))...)
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateTopologyKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, "name a label of nodes, such as kubernetes.io/hostname")}
	}
	return metav1validation.ValidateLabelName(key, path)
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{field.Invalid(path, weight, "must be between 1 and 100")}
	}
	return nil
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range constraints {
		constraint, at := &constraints[i], path.Index(i)
		errs = append(errs, validateSpreadConstraint(constraint, at)...)
		pair := fmt.Sprintf("%s, %s", constraint.TopologyKey, constraint.WhenUnsatisfiable)
		if seen[pair] {
			errs = append(errs, field.Duplicate(at, pair))
		}
		seen[pair] = true
	}
	return errs
}

func validateSpreadConstraint(constraint *corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	errs := validateTopologyKey(constraint.TopologyKey, path.Child("topologyKey"))
	if constraint.MaxSkew < 1 {
		errs = append(errs, field.Invalid(path.Child("maxSkew"), constraint.MaxSkew, "must be at least 1"))
	}
	if constraint.WhenUnsatisfiable == "" {
		errs = append(errs, field.Required(path.Child("whenUnsatisfiable"), "choose DoNotSchedule or ScheduleAnyway"))
	}
	errs = append(errs, validateEnum(constraint.WhenUnsatisfiable, path.Child("whenUnsatisfiable"),
		corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
	if domains := constraint.MinDomains; domains != nil {
		if *domains < 1 {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *domains, "must be at least 1"))
		}
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, forbidden(path.Child("minDomains"), "may be set only where whenUnsatisfiable is DoNotSchedule"))
		}
	}
	for _, policy := range []struct {
		name  string
		value *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", constraint.NodeAffinityPolicy}, {"nodeTaintsPolicy", constraint.NodeTaintsPolicy}} {
		if policy.value != nil {
			errs = append(errs, validateEnum(*policy.value, path.Child(policy.name), corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
		}
	}
	for i, key := range constraint.MatchLabelKeys {
		errs = append(errs, metav1validation.ValidateLabelName(key, path.Child("matchLabelKeys").Index(i))...)
	}
	return append(errs, validateSelector(constraint.LabelSelector, path.Child("labelSelector"))...)
}
