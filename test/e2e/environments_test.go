// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// roundTrip makes a cluster, a backup and a restore in place.
func (s *scenario) roundTrip(name, backup string, more ...string) *cluster {
	s.Helper()
	c := s.create(name, 1, etcdVersion, more...)
	data := c.fill()
	s.apply(backupManifest(name, "  etcdCluster: {name: "+name+"}"+toVolume+backup))
	s.awaitBackup(s.ctx(), name, "success", hasSucceeded)
	c.spoil(data)
	s.apply(restoreManifest(name, name, "  backup: {name: "+name+"}"))
	s.restored(name)
	c.settle(1)
	c.holds(data)
	return c
}

// rangePolicies do what OpenShift's admission does for restricted-v2: a user and a group of
// the range of the namespace for a pod without, no other ones for any pod.
const rangePolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{securityContext: Object.spec.securityContext{
        runAsUser: has(object.spec.securityContext) && has(object.spec.securityContext.runAsUser) ? object.spec.securityContext.runAsUser : 1000650000,
        fsGroup: has(object.spec.securityContext) && has(object.spec.securityContext.fsGroup) ? object.spec.securityContext.fsGroup : 1000650000}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - expression: object.spec.securityContext.runAsUser >= 1000650000 && object.spec.securityContext.runAsUser < 1000660000
    message: "restricted-v2: runAsUser must be in the range 1000650000/10000"
  - expression: object.spec.securityContext.fsGroup >= 1000650000 && object.spec.securityContext.fsGroup < 1000660000
    message: "restricted-v2: fsGroup must be in the range 1000650000/10000"
  - expression: object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.runAsUser))
    message: "restricted-v2: containers must not choose a user"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`

// constraintsDefinition has the API group served by which OpenShift is recognised.
const constraintsDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: securitycontextconstraints.security.openshift.io
spec:
  group: security.openshift.io
  scope: Cluster
  names: {kind: SecurityContextConstraints, plural: securitycontextconstraints, singular: securitycontextconstraints, listKind: SecurityContextConstraintsList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestUserRangeOfNamespace runs in a namespace that chooses the user of its pods. Without the
// API group of OpenShift the fixed user is rejected, and the status says so; with it, members
// and Jobs run as a user of the range and write their volumes.
func TestUserRangeOfNamespace(t *testing.T) {
	env.RequireLocal(t, harness.Programs)
	s := startFor(t, 2*testTimeout)
	s.stopInstalledController()
	s.admissionPolicies(rangePolicies)
	const rejection = "runAsUser must be in the range"
	s.awaitPolicies(s.probePod(nil), func(_ *corev1.Pod, err error) bool { return err != nil && strings.Contains(err.Error(), rejection) })
	s.volume()
	before := s.controller("before")
	s.apply(manifest("ranged", 1, etcdVersion, withVolumes))
	c := s.cluster("ranged")
	c.await(s.ctx(), "the fixed user to be rejected", func(object *clusterObject) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == v1beta2.ReasonPodRejected && strings.Contains(b.Message, rejection)
	})
	before.kill()

	s.apply(constraintsDefinition)
	s.Cleanup(func() { s.kubectlLater("delete", "crd", "securitycontextconstraints.security.openshift.io") })
	s.kubectl("wait", "--for=condition=Established", "crd/securitycontextconstraints.security.openshift.io", "--timeout=30s")
	users := s.watchUsers()
	s.controller("after")
	c.settle(1)
	s.roundTrip("emptied", "\n  verify: Restore")
	s.kubectl("delete", "etcd", "ranged", "--wait=false")
	s.roundTrip("kept", "", withVolumes)
	if users := users(); len(users) != 1 || !users["1000650000"] {
		t.Errorf("pods ran as %v", users)
	}
}

const limits = `apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 256Mi}
    defaultRequest: {cpu: 10m, memory: 32Mi}
    min: {memory: 16Mi}
    max: {cpu: "2", memory: %s}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: limits}
spec:
  hard: {requests.cpu: "4", requests.memory: 4Gi, limits.cpu: "8", limits.memory: 8Gi}
`

// TestContainerLimits runs where every container must have limits, and the namespace sets
// those that the pod does not set. The status reports a pod that does not fit.
func TestContainerLimits(t *testing.T) {
	t.Parallel()
	s := startFor(t, 2*testTimeout)
	s.volume()
	s.apply(fmt.Sprintf(limits, "1Gi"))
	s.roundTrip("without", "\n  verify: Restore")
	s.kubectl("delete", "etcd", "without", "--wait=false")
	c := s.roundTrip("with", "", `
  pod: {resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {cpu: "1", memory: 512Mi}}}`)
	if memory := c.members.Live()[0].Spec.Containers[0].Resources.Limits.Memory().String(); memory != "512Mi" {
		t.Errorf("the limit of the member is %s", memory)
	}
	s.apply(fmt.Sprintf(strings.Replace(limits, "memory: 256Mi", "memory: 128Mi", 1), "128Mi"))
	s.apply(backupManifest("tight", "  etcdCluster: {name: with}"+toVolume))
	s.awaitBackup(s.within(time.Minute), "tight", "the status to report the limit", func(b *v1beta2.EtcdBackup) bool {
		c := meta.FindStatusCondition(b.Status.Conditions, "Progressing")
		return c != nil && c.Reason == v1beta2.ReasonPodRejected && strings.Contains(c.Message, "maximum memory usage per Container is 128Mi")
	})
	s.apply(fmt.Sprintf(limits, "1Gi"))
	s.awaitBackup(s.ctx(), "tight", "success", hasSucceeded)
}

// watchUsers remembers the users of all pods that there ever are.
func (s *scenario) watchUsers() (users func() map[string]bool) {
	s.Helper()
	return s.remember(func(p *corev1.Pod) []string { return []string{fmt.Sprint(*p.Spec.SecurityContext.RunAsUser)} })
}
