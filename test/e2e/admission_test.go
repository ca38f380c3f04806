// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	validatingPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [etcd.database.coreos.com], apiVersions: [v1beta2], operations: [CREATE], resources: [etcdclusters]}]
  validations: [{expression: "object.spec.size != 5", message: "five are too many here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`
	mutatingPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [etcd.database.coreos.com], apiVersions: [v1beta2], operations: [CREATE], resources: [etcdclusters]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'storage'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`
)

// TestAdmission: the policies of the Kubernetes cluster hold for EtcdClusters, on every
// release for those kinds of policy that it serves.
func TestAdmission(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.admissionPolicies(validatingPolicy)
	var last error
	err := wait.PollUntilContextCancel(s.within(time.Minute), 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = s.tryCreate(ctx, 5)
		return apierrors.IsInvalid(last) || apierrors.IsForbidden(last), nil
	})
	s.must(err, "the policy does not deny; at last: %v", last)
	s.contains(last.Error(), "five are too many here")
	_, err = s.tryCreate(s.ctx(), 3)
	s.must(err, "a cluster that the policy allows")

	if !s.servesMutatingPolicies() {
		t.Log("Kubernetes does not serve MutatingAdmissionPolicies: they were not tested")
		return
	}
	s.admissionPolicies(mutatingPolicy)
	err = wait.PollUntilContextCancel(s.within(time.Minute), 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var made *v1beta2.EtcdCluster
		made, last = s.tryCreate(ctx, 3)
		return last == nil && made.Labels["team"] == "storage", nil
	})
	s.must(err, "the policy does not mutate; at last: %v", last)
}

// tryCreate creates a cluster as a dry run.
func (s *scenario) tryCreate(ctx context.Context, size int32) (*v1beta2.EtcdCluster, error) {
	return env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace).Create(ctx, &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "tried"},
		Spec:       v1beta2.ClusterSpec{Replicas: &size, Version: etcdVersion},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
