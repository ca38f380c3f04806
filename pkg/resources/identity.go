// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// labelAzureIdentity asks Azure's webhook to give the pod the identity of its service
	// account. Those of other clouds look at the service account alone.
	labelAzureIdentity = "azure.workload.identity/use"
	// These annotations name the containers that the webhooks of AWS and of Azure leave
	// without the token of the identity.
	annotationAWSWithout   = "eks.amazonaws.com/skip-containers"
	annotationAzureWithout = "azure.workload.identity/skip-containers"
)

// actAs gives a pod the service account that a store knows it by, but not the containers
// that are named: those are to have no token of it. It is a service account of the whole
// pod for Kubernetes, which mounts no token of its own into any container.
func actAs(meta *metav1.ObjectMeta, pod *corev1.PodSpec, account string, store v1beta2.BackupStorageType, without ...string) {
	if account == "" {
		return
	}
	pod.ServiceAccountName = account
	if store == v1beta2.BackupStorageTypeABS {
		metav1.SetMetaDataLabel(meta, labelAzureIdentity, "true")
	}
	if len(without) > 0 {
		metav1.SetMetaDataAnnotation(meta, annotationAWSWithout, strings.Join(without, ","))
		metav1.SetMetaDataAnnotation(meta, annotationAzureWithout, strings.Join(without, ";"))
	}
}
