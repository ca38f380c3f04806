// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// noSystemPriority rejects what GKE rejects: pods of a system priority class outside of
// kube-system. It holds in one namespace.
const noSystemPriority = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "!has(object.spec.priorityClassName) || !object.spec.priorityClassName.startsWith('system-')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`

// TestProgramsOnStrictKubernetes asks a namespace with the Pod Security Standard
// "restricted", a LimitRange, a ResourceQuota and no system priorities to take the pods of
// the installation.
func TestProgramsOnStrictKubernetes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply(`apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, default: {cpu: "1", memory: 512Mi}, max: {cpu: "2", memory: 1Gi}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "2", requests.cpu: "1", requests.memory: 1Gi, limits.cpu: "4", limits.memory: 3Gi}}
`)
	s.admissionPolicies(noSystemPriority)
	for _, name := range []string{harness.APIServer, harness.Controller} {
		deployment, err := env.Program(s.ctx(), name)
		s.must(err, "read deployment %s", name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: deployment.Spec.Template.Spec}
		// The service account is in the other namespace.
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
		critical := pod.DeepCopy()
		critical.Spec.PriorityClassName = "system-cluster-critical"
		// Policies take effect some time after they are written.
		for soon := s.within(time.Minute); ; {
			err := s.tryPod(critical)
			if apierrors.IsInvalid(err) {
				break
			}
			select {
			case <-soon.Done():
				s.Fatalf("a pod with system-cluster-critical is not rejected as invalid: error %v", err)
			case <-time.After(100 * time.Millisecond):
			}
		}
		s.must(s.tryPod(pod), "pod of deployment %s", name)
	}
}

// tryPod asks for a pod without making it.
func (s *scenario) tryPod(pod *corev1.Pod) error {
	_, err := env.Kube.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// TestAPIServerPorts installs the components that move the API server to another port and
// to the network of its node, and uses the API. It is not parallel: there is one API.
func TestAPIServerPorts(t *testing.T) {
	env.RequireLocal(t, harness.PodNetwork)
	s := startFor(t, 6*time.Minute)
	c := s.create("steady", 1, etcdVersion)
	data := c.fill()
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := install(ctx, env.Artifact("install")); err != nil {
			s.Errorf("install without components: %v", err)
		}
	})
	for component, port := range map[string]int32{"port-10250": 10250, "host-network": 10262} {
		own := s.TempDir()
		base, err := filepath.Rel(own, env.Artifact())
		s.must(err, "find the artifacts")
		kustomization := fmt.Sprintf("resources: [%[1]s/install]\ncomponents: [%[1]s/components/%[2]s]\n", base, component)
		s.must(os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(kustomization), 0o600), "write a kustomization")
		s.must(install(s.ctx(), own), "install component %s", component)

		pod := s.apiServerPod()
		if got := pod.Spec.Containers[0].Ports[0].ContainerPort; got != port || pod.Spec.HostNetwork != (component == "host-network") {
			t.Errorf("%s: port %d, network of the node: %t", component, got, pod.Spec.HostNetwork)
		}
		dialer := net.Dialer{Timeout: 5 * time.Second}
		for _, taken := range []string{"2379", "2380"} {
			if conn, err := dialer.DialContext(s.ctx(), "tcp", net.JoinHostPort(pod.Status.PodIP, taken)); err == nil {
				conn.Close()
				t.Errorf("%s: the etcd inside the API server listens on port %s of %s", component, taken, pod.Status.PodIP)
			}
		}
		s.contains(s.kubectl("get", "etcd"), "steady")
		s.contains(s.kubectl("get", "--raw", "/apis/etcd.database.coreos.com/v1beta2/namespaces/"+s.namespace+"/etcdclusters/steady/health"), `"Healthy"`)
	}
	c.holds(data)
}

// apiServerPod returns the pod of the API server that is ready.
func (s *scenario) apiServerPod() *corev1.Pod {
	s.Helper()
	pods, err := env.ProgramPods(s.ctx(), harness.APIServer)
	s.must(err, "follow the API server")
	defer pods.Close()
	var ready *corev1.Pod
	s.must(pods.Await(s.ctx(), func(list []*corev1.Pod) bool {
		if !harness.AllReady(1)(list) {
			return false
		}
		ready = list[0]
		return true
	}), "the API server to be ready")
	return ready
}

// install applies a kustomization as a user does and waits until the API is served.
func install(ctx context.Context, directory string) error {
	for _, args := range []string{
		"apply -k " + directory,
		"-n " + harness.SystemNamespace + " rollout status deployment/" + harness.APIServer + " --timeout=120s",
		"wait --for=condition=Available --timeout=60s apiservice/v1beta2.etcd.database.coreos.com",
	} {
		if _, err := env.Kubectl(ctx, harness.Command{Args: strings.Fields(args)}); err != nil {
			return err
		}
	}
	return nil
}
