// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestSettled follows a pod through changes of its image, with a kubelet that is late.
func TestSettled(t *testing.T) {
	c := &v1beta2.EtcdCluster{}
	at := func(version string, pod *corev1.Pod) *corev1.Pod {
		c.Spec.Version = version
		changed, _ := WithVersion(c, pod)
		changed.Generation++
		return changed
	}
	reported := func(id string, generation int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ObservedGeneration = generation
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", ContainerID: "x"}, {Name: ContainerName, ContainerID: id}}
		}
	}
	c.Spec.Version = "3.6.1"
	pod := Pod(c, MemberPod{Name: "a"})
	pod.Generation = 1
	for _, step := range []struct {
		name    string
		version string
		report  func(*corev1.Pod)
		want    bool
	}{
		{"it has not started", "", nil, true},
		{"it runs", "", reported("first", 1), true},
		{"another image, and the kubelet has not noticed", "3.6.2", nil, false},
		{"it says that it has noticed, without a result", "", reported("first", 2), false},
		{"the container was restarted", "", reported("second", 2), true},
		{"another image", "3.6.3", nil, false},
		{"taken back before the kubelet has noticed", "3.6.2", nil, false},
		{"the kubelet has noticed both, and restarts nothing", "", reported("second", 4), true},
		{"another image, and a kubelet that does not tell generations", "3.6.3", reported("second", 0), false},
		{"another image that a kubelet without generations has started", "", reported("third", 0), true},
		{"a second image before the container of the first one is reported", "3.6.4", reported("third", 0), false},
		{"a third image before the container of the first one is reported", "3.6.5", nil, false},
		{"the container of one of them", "", reported("fourth", 0), true},
		{"no container yet", "3.6.6", reported("", 0), true},
	} {
		if step.version != "" {
			pod = at(step.version, pod)
		}
		if step.report != nil {
			step.report(pod)
		}
		if got := IsSettled(pod); got != step.want {
			t.Errorf("%s: settled %t, want %t (%v)", step.name, got, step.want, pod.Annotations)
		}
	}
}
