// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// maxClusterNameLength leaves room for "-" and ten random characters in the
	// member's name, which is a host name of at most 63.
	maxClusterNameLength = 52
	// maxSize is where another voter costs every write more than it protects.
	maxSize = 7
)

// ValidateEtcdCluster returns what is wrong with a cluster that is to be created.
func ValidateEtcdCluster(cluster *v1beta2.EtcdCluster) field.ErrorList {
	return bounded(validateCluster(cluster))
}

func validateCluster(cluster *v1beta2.EtcdCluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, true, clusterNameMessages, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, validateVersion(cluster.Spec.Version, path.Child("version"))...)
	errs = append(errs, validateExperimentalFlags(&cluster.Spec, path)...)
	if existingOf(&cluster.Spec) != nil && cluster.Annotations[v1beta2.AnnotationRestore] != "" {
		errs = append(errs, forbidden(path.Child("bootstrap", "existing"), "may not be set for a cluster that an EtcdRestore fills, because a cluster begins with one kind of data; remove one of the two"))
	}
	errs = append(errs, validateClientSecrets(cluster, path.Child("clients"))...)
	return append(errs, validateClusterSpec(&cluster.Spec, path)...)
}

// clusterNameMessages says what is wrong with the name of a cluster: services are
// named after it, so it is a DNS-1035 label.
func clusterNameMessages(name string, prefix bool) []string {
	messages := apivalidation.NameIsDNS1035Label(name, prefix)
	if len(name) > maxClusterNameLength {
		messages = append(messages, "must be no more than 52 characters, because the members' host names are made from it; choose a shorter name")
	}
	return messages
}

// validateClusterSpec leaves the version to the caller, which knows whether it may be empty.
func validateClusterSpec(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	errs := validateSize(spec, path.Child("size"))
	errs = append(errs, validateRepository(spec.Repository, path.Child("repository"))...)
	errs = append(errs, validateImageDigest(spec.ImageDigest, path.Child("imageDigest"))...)
	if spec.Pod != nil {
		errs = append(errs, validatePodPolicy(spec.Pod, path.Child("pod"))...)
	}
	errs = append(errs, validateObjectsMetadata(spec, path)...)
	if spec.TLS != nil {
		errs = append(errs, validateTLS(spec.TLS, path.Child("TLS"))...)
	}
	errs = append(errs, validateBootstrap(spec, path)...)
	errs = append(errs, validateClients(spec, path.Child("clients"))...)
	if spec.Etcd != nil {
		errs = append(errs, validateEtcdOptions(spec.Etcd, path.Child("etcd"))...)
	}
	if spec.Services != nil && spec.Services.Client != nil {
		errs = append(errs, validateServiceTemplate(spec.Services.Client, path.Child("services", "client"))...)
	}
	if spec.Backup != nil {
		errs = append(errs, validateClusterBackupPolicy(spec.Backup, path.Child("backup"))...)
	}
	if spec.Recovery != nil {
		errs = append(errs, validateEnum(spec.Recovery.QuorumLoss, path.Child("recovery", "quorumLoss"),
			v1beta2.RecoveryManual, v1beta2.RecoveryAutomatic)...)
		errs = append(errs, validateEnum(spec.Recovery.MemberLoss, path.Child("recovery", "memberLoss"),
			v1beta2.RecoveryManual, v1beta2.RecoveryAutomatic)...)
		errs = append(errs, validateMemberLossTimeout(spec.Recovery.MemberLossTimeoutSeconds, path.Child("recovery", "memberLossTimeoutSeconds"))...)
	}
	return append(errs, validateEnum(spec.PodDisruptionBudget, path.Child("podDisruptionBudget"),
		v1beta2.PodDisruptionBudgetEnabled, v1beta2.PodDisruptionBudgetDisabled)...)
}

func validateMemberLossTimeout(seconds *int64, path *field.Path) field.ErrorList {
	switch {
	case seconds == nil:
		return nil
	case *seconds < v1beta2.MinMemberLossTimeoutSeconds || *seconds > v1beta2.MaxMemberLossTimeoutSeconds:
		return field.ErrorList{field.Invalid(path, *seconds, fmt.Sprintf("must be between %d and %d seconds; to replace no member without a request, set memberLoss to Manual", v1beta2.MinMemberLossTimeoutSeconds, v1beta2.MaxMemberLossTimeoutSeconds))}
	default:
		return nil
	}
}

func validateSize(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	switch {
	case spec.Replicas == nil:
		return field.ErrorList{field.Required(path, "say how many members the cluster has, such as 3")}
	case *spec.Replicas < 0 || *spec.Replicas > maxSize:
		return field.ErrorList{field.Invalid(path, *spec.Replicas, "must be between 0 and 7; 3 or 5 is right for most clusters")}
	case *spec.Replicas == 0 && !hasVolumes(spec):
		return field.ErrorList{field.Invalid(path, *spec.Replicas,
			"may be 0 only where spec.pod.persistentVolumeClaimSpec gives every member a volume, because without volumes the data goes with the pods; choose 1 to 7")}
	}
	return nil
}

func hasVolumes(spec *v1beta2.ClusterSpec) bool {
	return spec.Pod != nil && spec.Pod.PersistentVolumeClaimSpec != nil
}
