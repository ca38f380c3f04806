// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// started is what the launcher became.
type started struct {
	program       string
	args, environ []string
}

// launched returns a launch that records what it becomes.
func launched(file string, environ ...string) (*launch, *started) {
	s := &started{}
	return &launch{
		file: file, command: []string{"/usr/local/bin/etcd", "--name=m"}, environ: environ, log: &bytes.Buffer{},
		exec: func(program string, args, environ []string) error {
			*s = started{program, args, environ}
			return nil
		},
	}, s
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestWaitsForTheInitialCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "initial-cluster")
	l, s := launched(file, "A=1", "ETCD_INITIAL_CLUSTER=", "ETCD_INITIAL_CLUSTER_STATE=existing")
	l.httpPort, l.tcpPort = freePort(t), freePort(t)
	done := make(chan error, 1)
	go func() { done <- l.run(t.Context()) }()

	responded := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(l.httpPort)+"/livez", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(l.tcpPort))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for err := responded(); err != nil; err = responded() {
		if deadline.Err() != nil {
			t.Fatalf("the probes get no response: %v", err)
		}
	}
	if s.program != "" {
		t.Fatal("etcd was started before the member was added")
	}
	// The kubelet makes the file when the pod starts, and fills it later.
	for _, content := range []string{"", "m=http://m:2380,n=http://n:2380\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s.program != "/usr/local/bin/etcd" || !slices.Equal(s.args, l.command) {
		t.Errorf("became %q %q", s.program, s.args)
	}
	want := []string{"A=1", "ETCD_INITIAL_CLUSTER_STATE=existing", "ETCD_INITIAL_CLUSTER=m=http://m:2380,n=http://n:2380"}
	if !slices.Equal(s.environ, want) {
		t.Errorf("environment %q, want %q", s.environ, want)
	}
	if err := responded(); err == nil {
		t.Error("a port is still taken when etcd starts")
	}
}

// TestHeedsTheNoticeOfItsController: etcd starts as soon as the controller that made the pod says
// that the member was added. What anyone else says changes nothing.
func TestHeedsTheNoticeOfItsController(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, notOwned, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "initial-cluster")
	for name, content := range map[string]string{"initial-cluster": "", notice.KeyFile: notice.Encode(public), notice.UIDFile: "u-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, s := launched(file, "A=1")
	l.httpPort = freePort(t)
	done := make(chan error, 1)
	go func() { done <- l.run(t.Context()) }()

	const initialCluster = "m=http://m:2380,n=http://n:2380"
	say := func(body string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+strconv.Itoa(l.httpPort)+notice.Path, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	encoded := func(key ed25519.PrivateKey, uid string) string {
		raw, err := json.Marshal(notice.Sign(key, uid, initialCluster))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, bad := range []struct {
		body string
		want int
	}{
		{"no JSON", http.StatusBadRequest},
		{`{"initialCluster":"` + strings.Repeat("m", notice.MaxBytes) + `"}`, http.StatusBadRequest},
		{encoded(notOwned, "u-1"), http.StatusForbidden},
		{encoded(private, "u-2"), http.StatusForbidden},
	} {
		code, err := say(bad.body)
		for err != nil && deadline.Err() == nil { // until it listens
			code, err = say(bad.body)
		}
		if err != nil || code != bad.want {
			t.Errorf("%.60s: status %d, %v, want %d", bad.body, code, err, bad.want)
		}
	}
	if s.program != "" {
		t.Fatal("etcd was started by a notice of another program")
	}
	if code, err := say(encoded(private, "u-1")); err != nil || code != http.StatusNoContent {
		t.Errorf("the notice of the controller: status %d, %v", code, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := []string{"A=1", "ETCD_INITIAL_CLUSTER=" + initialCluster}; !slices.Equal(s.environ, want) {
		t.Errorf("environment %q, want %q", s.environ, want)
	}
}

func TestStartsAtOnceAfterTheMemberWasAdded(t *testing.T) {
	l, s := launched("/nowhere", "ETCD_INITIAL_CLUSTER=m=http://m:2380")
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.environ, l.environ) {
		t.Errorf("environment %q, want %q", s.environ, l.environ)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	l, s := launched(filepath.Join(t.TempDir(), "none"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.run(ctx); !errors.Is(err, context.Canceled) || s.program != "" {
		t.Errorf("error %v, became %q", err, s.program)
	}
}

// TestCommandOfPods: the launcher understands the command that pods give it.
func TestCommandOfPods(t *testing.T) {
	for version, port := range map[string]int{"3.6.16": resources.MetricsPort, "3.3.27": resources.PeerPort} {
		c := &v1beta2.EtcdCluster{}
		c.Name, c.Namespace, c.Spec.Version = "c", "n", version
		pod := resources.Pod(c, resources.MemberPod{Name: "c-a", Prepared: true, Image: "image"})
		command := pod.Spec.Containers[0].Command
		l, err := parse(command[2:], &bytes.Buffer{})
		if err != nil {
			t.Fatalf("%s: %q: %v", version, command, err)
		}
		if command[1] != "run" || l.httpPort+l.tcpPort != port || l.command[0] != "/usr/local/bin/etcd" {
			t.Errorf("%s: ports %d %d, command %q", version, l.httpPort, l.tcpPort, l.command)
		}
		if args := pod.Spec.InitContainers[0].Command; args[1] != "install" || filepath.Dir(command[0]) != args[2] {
			t.Errorf("%s: %q installs what %q runs", version, args, command[0])
		}
	}
}

func TestInstall(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "launcher"), t.TempDir()
	if err := os.WriteFile(from, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := install(from, to); err != nil {
		t.Fatal(err)
	}
	stat, err := os.Stat(filepath.Join(to, "launcher"))
	if err != nil || stat.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", stat, err)
	}
	if err := install(filepath.Join(to, "missing"), to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := install(from, filepath.Join(to, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"other"}, {"install"}, {"run", "file"}, {"run", "--answer-http=x", "file", "etcd"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestWaitingPodIsNotReady: while the launcher waits, the probes of the process succeed and the readiness
// probe fails, with every version of etcd.
func TestWaitingPodIsNotReady(t *testing.T) {
	for _, version := range []string{"3.2.32", "3.3.27", "3.4.28", "3.4.29", "3.5.2", "3.5.3", "3.5.11", "3.6.16", "3.7.3"} {
		for _, secure := range []bool{false, true} {
			c := &v1beta2.EtcdCluster{}
			c.Name, c.Namespace, c.Spec.Version = "c", "n", version
			if secure {
				c.Spec.TLS = &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}
			}
			etcd := resources.Pod(c, resources.MemberPod{Name: "c-a", Prepared: true, Image: "image"}).Spec.Containers[0]
			l, err := parse(etcd.Command[2:], &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			alive, ready := etcd.StartupProbe, etcd.ReadinessProbe
			if alive.HTTPGet == nil { // the launcher accepts connections at the port of this probe
				if alive.TCPSocket.Port.IntValue() != l.tcpPort || portOf(ready) == l.tcpPort {
					t.Errorf("%s, TLS %t: the launcher accepts connections at port %d, and readiness is probed at %d", version, secure, l.tcpPort, portOf(ready))
				}
				continue
			}
			port := freePort(t)
			l.file, l.tcpPort = filepath.Join(t.TempDir(), "none"), 0
			l.httpPort = port
			finish, err := l.respond(t.Context(), make(chan string, 1))
			if err != nil {
				t.Fatal(err)
			}
			if code := get(t, port, alive.HTTPGet.Path); code != http.StatusOK {
				t.Errorf("%s, TLS %t: %s says %d", version, secure, alive.HTTPGet.Path, code)
			}
			if portOf(ready) == portOf(alive) {
				if code := get(t, port, ready.HTTPGet.Path); code != http.StatusServiceUnavailable {
					t.Errorf("%s, TLS %t: %s says %d while etcd does not serve", version, secure, ready.HTTPGet.Path, code)
				}
			}
			finish()
		}
	}
}

// portOf returns the port that a probe asks.
func portOf(probe *corev1.Probe) int {
	if probe.HTTPGet != nil {
		return probe.HTTPGet.Port.IntValue()
	}
	return probe.TCPSocket.Port.IntValue()
}

func get(t *testing.T, port int, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
