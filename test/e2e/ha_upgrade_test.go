// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	programImage = "quay.io/etcd-operator/etcd-operator"
	etcdImage    = "quay.io/coreos/etcd"
)

// rate is the mean of phases.
type rate struct {
	requests int
	took     time.Duration
}

func (r *rate) add(p harness.Phase) {
	r.requests += p.Requests
	r.took += p.Took
}

func (r *rate) perSecond() float64 { return float64(r.requests) / r.took.Seconds() }

// rolledOut waits until all programs of artifacts/ha have their newest pods.
func (s *scenario) rolledOut() {
	s.Helper()
	for _, what := range []string{"statefulset/" + storageName, "deployment/" + harness.APIServer, "deployment/" + harness.Controller} {
		s.kubectl("-n", harness.SystemNamespace, "rollout", "status", what, "--timeout=240s")
	}
}

// runs checks the images of the pods of an installation.
func (s *scenario) runs(i installation) {
	s.Helper()
	for name, want := range map[string]string{harness.APIServer: i.programs, harness.Controller: i.programs, storageName: etcdImage + ":v" + i.storage} {
		selector := "app.kubernetes.io/name=" + name
		if name != storageName {
			deployment, err := env.Program(s.ctx(), name)
			s.must(err, "read deployment %s", name)
			selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
		}
		pods := s.systemPods(selector).List()
		if len(pods) == 0 {
			s.Errorf("%s has no pods", name)
		}
		for _, pod := range pods {
			if got := pod.Spec.Containers[0].Image; got != want && pod.DeletionTimestamp == nil {
				s.Errorf("%s runs %s, want %s", pod.Name, got, want)
			}
		}
	}
}

// TestHighAvailabilityOnEmpty removes the operator, applies artifacts/ha where nothing of it is
// left, and uses the API. It is not parallel: there is one API.
func TestHighAvailabilityOnEmpty(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 10*time.Minute)
	s.onlyTest()
	s.Cleanup(s.reinstall)
	s.administer("delete", "--ignore-not-found", "-f", env.Artifact("components", "read-tls-secrets", "binding.yaml"))
	s.administer("delete", "-k", env.Artifact("install"), "--timeout=120s")
	s.nothingInstalled()

	begun := time.Now()
	s.administer("apply", "-k", env.Artifact("ha"))
	s.rolledOut()
	s.administer("wait", "--for=condition=Available", "--timeout=120s", "apiservice/v1beta2.etcd.database.coreos.com")
	t.Logf("artifacts/ha served %v after it was applied", time.Since(begun).Round(time.Second))
	s.drainsOneByOne("etcd-operator-apiserver", "etcd-operator-controller", storageName)
	c := s.create("first", 1, etcdVersion)
	c.holds(c.fill())
	s.kubectl("delete", "etcdcluster/first", "--timeout=60s")
	// The garbage collector looks twice a minute which kinds there are. An API that is deleted before it
	// has seen the EtcdCluster leaves the pods, and an API server with an empty storage does not start then.
	s.must(c.members.Pods.Await(s.within(3*time.Minute), func(pods []*corev1.Pod) bool { return len(pods) == 0 }), "the pods of a deleted cluster to go")

	s.administer("delete", "-k", env.Artifact("ha"), "--timeout=180s")
	s.nothingInstalled()
}

// drainsOneByOne checks that a drain may evict one pod of each program, and no second one with it.
func (s *scenario) drainsOneByOne(programs ...string) {
	s.Helper()
	for _, name := range programs {
		s.until(s.within(time.Minute), "the PodDisruptionBudget of "+name+" to allow one eviction", func() bool {
			budget, err := env.Kube.PolicyV1().PodDisruptionBudgets(harness.SystemNamespace).Get(s.ctx(), name, metav1.GetOptions{})
			s.must(err, "read the PodDisruptionBudget of %s", name)
			return budget.Status.DisruptionsAllowed == 1 && budget.Status.ExpectedPods >= 2
		})
	}
}

// administer runs kubectl in no namespace.
func (s *scenario) administer(args ...string) {
	s.Helper()
	out, err := env.Kubectl(s.ctx(), harness.Command{Args: args})
	s.must(err, "kubectl %s: %s", strings.Join(args, " "), out)
}

// nothingInstalled checks that nothing is left of an installation that was deleted.
func (s *scenario) nothingInstalled() {
	s.Helper()
	if _, err := env.Kube.CoreV1().Namespaces().Get(s.ctx(), harness.SystemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Fatalf("namespace %s exists after the operator was deleted: error %v", harness.SystemNamespace, err)
	}
	for _, kind := range []string{"apiservice", "clusterrole", "clusterrolebinding", "priorityclass", "validatingadmissionpolicy"} {
		for name := range strings.FieldsSeq(s.kubectl("get", kind, "-o", "name")) {
			if strings.Contains(name, "etcd-operator") || strings.Contains(name, v1beta2.SchemeGroupVersion.Group) {
				s.Fatalf("after the operator was deleted there is %s", name)
			}
		}
	}
}

// reinstall leaves the single API server and the right that hack/install.sh grants, also if the test failed.
func (s *scenario) reinstall() {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	_, err := env.Kube.AppsV1().StatefulSets(harness.SystemNamespace).Get(ctx, storageName, metav1.GetOptions{})
	if err == nil {
		if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"delete", "-k", env.Artifact("ha"), "--ignore-not-found", "--timeout=180s"}}); err != nil {
			s.Errorf("delete artifacts/ha: %v", err)
		}
	}
	if err := install(ctx, env.Artifact("install")); err != nil {
		s.Errorf("install a single API server: %v", err)
	}
	binding := env.Artifact("components", "read-tls-secrets", "binding.yaml")
	if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"apply", "-f", binding}}); err != nil {
		s.Errorf("grant the API server the right to read Secrets: %v", err)
	}
}
