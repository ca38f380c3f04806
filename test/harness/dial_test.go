// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestDialGoesThroughPortForward connects to a pod of a cluster that is not the local one. A
// script stands in for kubectl, and a listener for the port that kubectl opens.
func TestDialGoesThroughPortForward(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte("etcd"))
			connection.Close()
		}
	}()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\necho 'Forwarding from %s -> 2379'\nexec sleep 60\n", calls, listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	e := &Environment{Bin: dir, Kube: fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1", UID: "uid"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	})}
	for range 2 {
		connection, err := e.Dial(t.Context(), "tcp", "10.0.0.1:2379")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := connection.Read(got); err != nil || string(got) != "etcd" {
			t.Errorf("read %q: %v", got, err)
		}
		connection.Close()
	}
	e.Close()
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "port-forward --namespace=ns --address=127.0.0.1 pod/c-1 :2379"
	if said := strings.TrimSpace(string(raw)); said != want {
		t.Errorf("kubectl was called with %q, and not once with %q", said, want)
	}
}

// skipped is a test that remembers why it was skipped.
type skipped struct{ why string }

func (s *skipped) Helper()                          {}
func (s *skipped) Skipf(format string, args ...any) { s.why = fmt.Sprintf(format, args...) }

// TestRequireLocalSaysWhatIsNeeded skips on any cluster but the local one.
func TestRequireLocalSaysWhatIsNeeded(t *testing.T) {
	other, local := &skipped{}, &skipped{}
	(&Environment{}).RequireLocal(other, PodNetwork)
	(&Environment{Local: "local"}).RequireLocal(local, PodNetwork)
	if !strings.Contains(other.why, string(PodNetwork)) || local.why != "" {
		t.Errorf("skipped with %q elsewhere, and with %q on the local Kubernetes", other.why, local.why)
	}
}
