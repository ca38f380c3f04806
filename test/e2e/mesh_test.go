// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// sidecar is the name of the container that meshPolicy adds.
const sidecar = "mesh-proxy"

// meshPolicy does to the pods of Jobs what the webhook of a mesh does: a container that
// never ends is added to the list that the second argument names.
const meshPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    objectSelector: {matchExpressions: [{key: app, operator: In, values: [etcd-backup, etcd-restore]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        has(object.spec.%[2]s) ? [JSONPatch{op: "add", path: "/spec/%[2]s/-", value: Object.spec.%[2]s{
        name: "mesh-proxy", image: "docker.io/library/busybox:1.35", command: ["sleep", "86400"],%[3]s
        securityContext: Object.spec.%[2]s.securityContext{allowPrivilegeEscalation: false,
        capabilities: Object.spec.%[2]s.securityContext.capabilities{drop: ["ALL"]}}}}] : []
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`

// TestSidecarBesideJobs: a mesh adds a container that never ends to the pods of Jobs, as an
// ordinary or as a native sidecar. Backups and restores succeed, and the Jobs go. A policy
// adds a native one only beside other init containers, which the Jobs of restores lack.
func TestSidecarBesideJobs(t *testing.T) {
	for name, kind := range map[string]struct {
		list, restart, backup string
		jobs                  []string
	}{
		"ordinary": {"containers", "", "", []string{"etcd-backup", "etcd-restore"}},
		"native":   {"initContainers", ` restartPolicy: "Always",`, "\n  verify: Restore", []string{"etcd-backup"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.volume()
			probe := s.probePod(map[string]string{"app": "etcd-backup"})
			probe.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x", SecurityContext: restrictedContainer()}}
			s.mutatePods(probe, hasSidecar, meshPolicy, kind.list, kind.restart)
			with := s.remember(func(p *corev1.Pod) []string {
				if app := p.Labels["app"]; hasSidecar(p) && p.Status.Phase == corev1.PodRunning {
					return []string{app}
				}
				return nil
			})
			s.roundTrip("meshed", kind.backup)
			apps := with()
			for _, job := range kind.jobs {
				if !apps[job] {
					t.Errorf("no pod of %s ran with the sidecar, only those of %v", job, apps)
				}
			}
			s.until(s.within(cleanupTimeout), "the Jobs to go", func() bool { return s.kubectl("get", "jobs", "-o", "name") == "" })
		})
	}
}

func hasSidecar(p *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.Containers, p.Spec.InitContainers), func(c corev1.Container) bool { return c.Name == sidecar })
}
