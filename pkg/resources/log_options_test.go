// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestLogOptions: a pod says what its etcd was started with, which may be another value than the one that is declared.
func TestLogOptions(t *testing.T) {
	for name, test := range map[string]struct {
		container string
		command   []string
		env       []corev1.EnvVar
		want      LogOptions
	}{
		"none":                        {container: ContainerName},
		"flags":                       {ContainerName, []string{"etcd", "--snapshot-count=100", "--snapshot-catchup-entries=7000"}, nil, LogOptions{100, 7000}},
		"an experimental name":        {ContainerName, []string{"etcd", "--experimental-snapshot-catchup-entries=8000"}, nil, LogOptions{0, 8000}},
		"variables":                   {ContainerName, []string{"etcd"}, []corev1.EnvVar{{Name: "ETCD_SNAPSHOT_COUNT", Value: "200"}}, LogOptions{200, 0}},
		"the larger of both":          {ContainerName, []string{"etcd", "--snapshot-count=100"}, []corev1.EnvVar{{Name: "ETCD_SNAPSHOT_COUNT", Value: "200"}}, LogOptions{200, 0}},
		"a container of another name": {"sidecar", []string{"etcd", "--snapshot-count=100"}, nil, LogOptions{}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other"}, {Name: test.container, Command: test.command, Env: test.env}}}}
		if got := LogOptionsOfPod(pod); got != test.want {
			t.Errorf("%s: %+v in the pod, want %+v", name, got, test.want)
		}
	}
	count := int64(300)
	desired := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{SnapshotCount: &count}}}
	if got, want := LogOptionsOf(desired), (LogOptions{SnapshotCount: 300}); got != want {
		t.Errorf("%+v is declared, want %+v", got, want)
	}
}
