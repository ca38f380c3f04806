// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestCacheOfConfigMapsIsBounded: 400 ConfigMaps of 1 MiB with the labels of a record take little memory and wake no cluster.
func TestCacheOfConfigMapsIsBounded(t *testing.T) {
	t.Parallel()
	total := 0
	for range 400 {
		kept, err := keepOwn(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "any", Labels: resources.Labels("c")},
			Data:       map[string]string{"k": strings.Repeat("x", 1<<20)},
		})
		if err != nil {
			t.Fatal(err)
		}
		cm := kept.(*corev1.ConfigMap)
		total += cm.Size()
		if key, concerned := keyOfRecord(cm); concerned {
			t.Fatalf("it wakes %s", key)
		}
	}
	if total > 1<<20 {
		t.Errorf("%d bytes are kept", total)
	}
}
