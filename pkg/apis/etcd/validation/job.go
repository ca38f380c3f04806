// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// leastAgentMemory is the memory limit that the agent is built for.
const leastAgentMemory = "256Mi"

// proxyVariables are all variables that a user may set. Everything else that the agent, the
// libraries of the stores or the runtime read could lead to other credentials, to another
// endpoint or to files.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

// reservedJobLabels and reservedJobAnnotations are the beginnings of keys that are not the
// user's, and why.
var (
	reservedJobLabels = map[string]string{
		"batch.kubernetes.io/":           "belongs to the Job controller; remove it",
		"job-name":                       "belongs to the Job controller; remove it",
		"controller-uid":                 "belongs to the Job controller; remove it",
		"azure.workload.identity/":       "gives the pod an identity; set serviceAccountName instead",
		"etcd.database.coreos.com/":      "belongs to the controller; choose another key",
		"pod-security.kubernetes.io/":    "changes what the pod may do; remove it",
		"security.openshift.io/":         "changes what the pod may do; remove it",
		"iam.amazonaws.com/":             "gives the pod an identity; set serviceAccountName instead",
		"aadpodidbinding":                "gives the pod an identity; set serviceAccountName instead",
		"eks.amazonaws.com/":             "gives the pod an identity; set serviceAccountName instead",
		"iam.gke.io/":                    "gives the pod an identity; set serviceAccountName instead",
		"pod-identity.alibabacloud.com/": "gives the pod an identity; set serviceAccountName instead",
	}
	reservedJobAnnotations = map[string]string{
		"etcd.database.coreos.com/":                       "belongs to the controller; choose another key",
		"container.apparmor.security.beta.kubernetes.io/": "changes the security context, which belongs to the controller; remove it",
		"container.seccomp.security.alpha.kubernetes.io/": "changes the security context, which belongs to the controller; remove it",
		"seccomp.security.alpha.kubernetes.io/":           "changes the security context, which belongs to the controller; remove it",
		"security.openshift.io/":                          "changes the security context, which belongs to the controller; remove it",
		"openshift.io/":                                   "changes the security context, which belongs to the controller; remove it",
		"azure.workload.identity/":                        "gives the pod an identity; set serviceAccountName instead",
		"eks.amazonaws.com/":                              "gives the pod an identity; set serviceAccountName instead",
		"iam.amazonaws.com/":                              "gives the pod an identity; set serviceAccountName instead",
		"iam.gke.io/":                                     "gives the pod an identity; set serviceAccountName instead",
		"pod-identity.alibabacloud.com/":                  "gives the pod an identity; set serviceAccountName instead",
	}
)

// validateJobPolicy checks what a user says of the pods of Jobs; nil says nothing.
func validateJobPolicy(job *v1beta2.JobPolicy, path *field.Path) field.ErrorList {
	if job == nil {
		return nil
	}
	errs := validateOwnedLabels(job.Labels, path.Child("labels"))
	errs = append(errs, reserved(job.Labels, reservedJobLabels, path.Child("labels"))...)
	errs = append(errs, validatePodAnnotations(job.Annotations, path.Child("annotations"))...)
	errs = append(errs, reserved(job.Annotations, reservedJobAnnotations, path.Child("annotations"))...)
	errs = append(errs, validateScheduling(&v1beta2.PodPolicy{
		NodeSelector: job.NodeSelector, Tolerations: job.Tolerations, Affinity: job.Affinity,
	}, path)...)
	errs = append(errs, validateObjectName(job.PriorityClassName, path.Child("priorityClassName"))...)
	for i, ref := range job.ImagePullSecrets {
		errs = append(errs, requireObjectName(ref.Name, path.Child("imagePullSecrets").Index(i).Child("name"), "name the Secret")...)
	}
	for i := range job.Env {
		errs = append(errs, validateProxyVariable(&job.Env[i], job.Env[:i], path.Child("env").Index(i))...)
	}
	return append(errs, validateJobResources(&job.Resources, path.Child("resources"))...)
}

func reserved(entries, beginnings map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		for _, beginning := range slices.Sorted(maps.Keys(beginnings)) {
			if key == beginning || strings.HasSuffix(beginning, "/") && strings.HasPrefix(key, beginning) {
				errs = append(errs, forbidden(path.Key(key), "%s", beginnings[beginning]))
			}
		}
	}
	return errs
}

// validateProxyVariable checks one variable; before are those that stand before it.
func validateProxyVariable(variable *corev1.EnvVar, before []corev1.EnvVar, path *field.Path) field.ErrorList {
	name := path.Child("name")
	var errs field.ErrorList
	switch {
	case variable.Name == "":
		errs = append(errs, field.Required(name, "name the variable: "+strings.Join(proxyVariables, ", ")))
	case !slices.Contains(proxyVariables, variable.Name) && !slices.Contains(proxyVariables, strings.ToUpper(variable.Name)):
		errs = append(errs, field.NotSupported(name, variable.Name, proxyVariables))
	case variable.Name != strings.ToUpper(variable.Name) && variable.Name != strings.ToLower(variable.Name):
		errs = append(errs, invalid(name, variable.Name, "must be all in upper or all in lower case"))
	case slices.ContainsFunc(before, func(b corev1.EnvVar) bool { return b.Name == variable.Name }):
		errs = append(errs, field.Duplicate(name, variable.Name))
	}
	if variable.ValueFrom != nil {
		errs = append(errs, forbidden(path.Child("valueFrom"), "is not possible here; set value"))
	}
	// The value may hold a password, so no error repeats it.
	if hasControl(variable.Value) {
		errs = append(errs, forbidden(path.Child("value"), "must not contain control characters"))
	}
	if strings.Contains(variable.Value, "@") {
		errs = append(errs, forbidden(path.Child("value"),
			"must not hold a user and a password, which every reader of the object would see; let the proxy accept the pods by their addresses"))
	}
	return errs
}

// validateJobResources checks resources that are merged with those that the agent has.
func validateJobResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateResources(resources, path)
	if !isMeasurable(errs) {
		return errs
	}
	if limit, found := resources.Limits[corev1.ResourceMemory]; found && limit.Cmp(resource.MustParse(leastAgentMemory)) < 0 {
		errs = append(errs, invalid(path.Child("limits").Key(string(corev1.ResourceMemory)), limit.String(),
			"must be at least %s, which a transfer may need; leave it out for that", leastAgentMemory))
	}
	return errs
}
