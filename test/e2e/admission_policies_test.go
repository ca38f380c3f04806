// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// kindLine is the line of a manifest that names the kind of an object.
var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// admissionPolicies applies policies and their bindings, each named like the namespace of
// the test, which is the first argument of the format manifest. They take effect some time
// later; see awaitPolicies. The returned function deletes them; the test does so at its end.
func (s *scenario) admissionPolicies(manifest string, args ...any) (end func()) {
	s.Helper()
	s.apply(fmt.Sprintf(manifest, append([]any{s.namespace}, args...)...))
	var kinds []string
	for _, match := range kindLine.FindAllStringSubmatch(manifest, -1) {
		kinds = append(kinds, match[1])
	}
	end = sync.OnceFunc(func() { s.kubectlLater("delete", strings.Join(kinds, ","), s.namespace) })
	s.Cleanup(end)
	return end
}

// mutatePods applies policies that change every pod of the namespace, or those with the
// labels of probe, and waits until changed is true of what the policies make of probe.
func (s *scenario) mutatePods(probe *corev1.Pod, changed func(*corev1.Pod) bool, manifest string, args ...any) (end func()) {
	s.Helper()
	if !s.servesMutatingPolicies() {
		s.Skip("this Kubernetes serves no MutatingAdmissionPolicy of version v1")
	}
	end = s.admissionPolicies(manifest, args...)
	s.awaitPolicies(probe, func(made *corev1.Pod, err error) bool { return err == nil && changed(made) })
	return end
}

// awaitPolicies waits until policies do with probe what is expected of them.
func (s *scenario) awaitPolicies(probe *corev1.Pod, expected func(made *corev1.Pod, err error) bool) {
	s.Helper()
	var last error
	err := wait.PollUntilContextCancel(s.within(time.Minute), 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var made *corev1.Pod
		made, last = env.Kube.CoreV1().Pods(s.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return expected(made, last), nil
	})
	s.must(err, "wait for the policy (%v)", last)
}

func (s *scenario) servesMutatingPolicies() bool {
	s.Helper()
	_, err := env.Kube.AdmissionregistrationV1().MutatingAdmissionPolicies().List(s.ctx(), metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false
	}
	s.must(err, "ask whether Kubernetes serves MutatingAdmissionPolicies")
	return true
}

// probePod is a pod that every namespace admits.
func (s *scenario) probePod(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: s.namespace, Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: restrictedPod(),
			Containers:      []corev1.Container{{Name: "x", Image: "quay.io/coreos/etcd:v" + etcdVersion, SecurityContext: restrictedContainer()}},
		},
	}
}
