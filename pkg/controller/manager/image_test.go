// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/version"
)

func TestAgentImage(t *testing.T) {
	t.Parallel()
	const mirrored = "registry.example.com/mirror/etcd-operator@sha256:0123"
	pod := func(containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "controller-0"},
			Spec:       corev1.PodSpec{Containers: containers},
		}
	}
	inPod := Options{podNamespace: "operators", podName: "controller-0"}
	named := inPod
	named.AgentImage = "agent:1"
	for name, test := range map[string]struct {
		options Options
		pod     *corev1.Pod
		want    string
		fails   string
	}{
		"flag wins over the pod":     {options: named, pod: pod(corev1.Container{Name: "controller", Image: mirrored}), want: "agent:1"},
		"image of the own container": {options: inPod, pod: pod(corev1.Container{Name: "proxy", Image: "proxy:1"}, corev1.Container{Name: "controller", Image: mirrored}), want: mirrored},
		"only container of any name": {options: inPod, pod: pod(corev1.Container{Name: "manager", Image: mirrored}), want: mirrored},
		"outside of a pod":           {options: Options{}, pod: pod(), want: imageRepository + ":" + version.Get().GitVersion},
		"no container of that name":  {options: inPod, pod: pod(corev1.Container{Name: "a"}, corev1.Container{Name: "b"}), fails: "--agent-image"},
		"pod not found":              {options: Options{podNamespace: "operators", podName: "other"}, pod: pod(), fails: "POD_NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := agentImage(context.Background(), fake.NewClientset(test.pod).CoreV1(), &test.options)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want one that contains %q", err, test.fails)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("image %q, error %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestCompleteReadsPod: the lease lies in the namespace of the pod unless a flag says
// otherwise. It sets environment variables, so it is not parallel.
func TestCompleteReadsPod(t *testing.T) {
	t.Setenv(envPodNamespace, "operators")
	t.Setenv(envPodName, "controller-0")
	installed, flagged := NewOptions(), NewOptions()
	flagged.LeaseNamespace = "leases"
	for _, o := range []*Options{installed, flagged} {
		if err := o.Complete(); err != nil {
			t.Fatal(err)
		}
	}
	if installed.LeaseNamespace != "operators" || installed.podName != "controller-0" || flagged.LeaseNamespace != "leases" {
		t.Errorf("lease in %q of pod %q, with the flag in %q; want operators, controller-0, leases",
			installed.LeaseNamespace, installed.podName, flagged.LeaseNamespace)
	}
	t.Setenv(envPodNamespace, "")
	outside := NewOptions()
	if err := outside.Complete(); err != nil || outside.LeaseNamespace != defaultNamespace {
		t.Errorf("lease in %q, error %v; want %q", outside.LeaseNamespace, err, defaultNamespace)
	}
}
