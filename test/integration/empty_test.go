// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// TestLostStorage starts servers with empty storages while a member exists. Kubernetes would delete
// its pod if the server served the storage.
func TestLostStorage(t *testing.T) {
	t.Parallel()
	space := newNamespace(t)
	cluster := create(t, space, newCluster("a"))
	_, err := env.client.CoreV1().PersistentVolumeClaims(space).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "a-x", Labels: resources.Labels("a"), OwnerReferences: []metav1.OwnerReference{resources.Owner(cluster)}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, storage := range map[string][]string{
		"empty directory is rejected": {"--embedded-etcd-dir=" + filepath.Join(t.TempDir(), "data")},
		"wrong prefix is rejected":    {"--etcd-servers=" + env.kubeEtcd.endpoint, "--etcd-prefix=/emptied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The second start is rejected too: the first one has not marked the storage as used.
			for range 2 {
				mustNotServe(t, storage)
			}
		})
	}
}

// mustNotServe starts a server that must end by itself, and log why.
func mustNotServe(t *testing.T, storage []string) {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	rejected, err := env.launch(fmt.Sprintf("emptied-%d", port), port, storage...)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-rejected.Done():
	case <-time.After(testPatience):
		_ = rejected.Stop(syscall.SIGKILL, testPatience)
		t.Fatalf("it serves from an empty storage:\n%s", rejected.Tail())
	}
	if said := rejected.Tail(); rejected.Err() == nil || !strings.Contains(said, "no API server has used this storage") || !strings.Contains(said, "--allow-empty-storage") {
		t.Errorf("it ended with %v and said\n%s", rejected.Err(), said)
	}
}
