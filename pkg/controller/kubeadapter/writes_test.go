// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	fakeetcd "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

// TestWritesForANamespaceAreBounded: a namespace whose members report other values with each response, or whose users undo
// what the controller sets, does not fill the storage of all namespaces. No other namespace waits for it.
func TestWritesForANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	of := func(namespace string) *v1beta2.EtcdCluster {
		c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
		c.Status.Reason = strings.Repeat("x", 1<<20)
		return c
	}
	api := fakeetcd.NewClientset()
	var rejection error
	api.PrependReactor("update", "etcdclusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.UpdateAction).GetObject(), rejection
	})
	c := Client{Etcd: api, Writes: NewWrites(clock)}
	write := func(namespace string) error {
		_, err := c.UpdateClusterStatus(t.Context(), of(namespace))
		return err
	}
	rejection = errors.New("the API is away")
	for range 100 {
		if err := write("hostile"); !errors.Is(err, rejection) {
			t.Fatal("a write that the API rejects counts:", err)
		}
	}
	rejection = nil
	written := 0
	for write("hostile") == nil && written < 100 {
		written++
	}
	if written != 63 {
		t.Errorf("%d statuses of 1 MiB were written at once; want 63", written)
	}
	if _, err := c.PatchFinalizers(t.Context(), of("hostile")); err == nil {
		t.Error("a finalizer is added without a bound")
	}
	if err := write("other"); err != nil {
		t.Error("another namespace:", err)
	}
	clock.Step(4 * time.Second)
	if err := write("hostile"); err != nil {
		t.Error("later:", err)
	}
}
