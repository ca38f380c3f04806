// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdadapter

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// told is a launcher that passes on the notices that it gets.
func told(t *testing.T, l *Launchers) (*corev1.Pod, <-chan notice.Notice) {
	t.Helper()
	notices := make(chan notice.Notice, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notice.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil || r.URL.Path != notice.Path || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(http.StatusNoContent)
		notices <- n
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().(*net.TCPAddr)
	pod := &corev1.Pod{}
	pod.UID = "u-1"
	pod.Annotations = map[string]string{resources.AnnotationNoticeKey: l.Key()}
	pod.Status.PodIP = address.IP.String()
	pod.Spec.Containers = []corev1.Container{{StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(address.Port)},
	}}}}
	return pod, notices
}

func TestTell(t *testing.T) {
	t.Parallel()
	l, err := NewLaunchers(share.Divided)
	if err != nil {
		t.Fatal(err)
	}
	pod, notices := told(t, l)
	l.Tell(t.Context(), pod, "m=http://m:2380")
	select {
	case n := <-notices:
		if err := n.Verify(l.Key(), "u-1"); err != nil || n.InitialCluster != "m=http://m:2380" {
			t.Errorf("told %+v: %v", n, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the launcher was not told")
	}
}

// TestTellsALauncherThatListensLate: the first connections fail, as they do while the program in the
// container does not listen yet.
func TestTellsALauncherThatListensLate(t *testing.T) {
	t.Parallel()
	l, err := NewLaunchers(share.Divided)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 4 {
			panic(http.ErrAbortHandler) // closes the connection
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.send(ctx, server.Listener.Addr().String(), notice.Notice{}); err != nil || requests.Load() != 4 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

// TestFollowsNoRedirect: a container of a pod that responds instead of the launcher must not make the
// controller request something else.
func TestFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	l, err := NewLaunchers(share.Divided)
	if err != nil {
		t.Fatal(err)
	}
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		followed.Store(true)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	if err := l.send(t.Context(), server.Listener.Addr().String(), notice.Notice{}); !errors.Is(err, errRejected) || followed.Load() {
		t.Errorf("followed: %v, %v", followed.Load(), err)
	}
}

// TestEndsAtARejection: nothing is repeated to what responds and rejects the notice.
func TestEndsAtARejection(t *testing.T) {
	t.Parallel()
	l, err := NewLaunchers(share.Divided)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	if err := l.send(t.Context(), server.Listener.Addr().String(), notice.Notice{}); !errors.Is(err, errRejected) || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

// TestTellsNothing: without a launcher that would believe it the controller says nothing.
func TestTellsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"another controller made the pod": func(p *corev1.Pod) { p.Annotations[resources.AnnotationNoticeKey] = "another" },
		"a release without notices":       func(p *corev1.Pod) { p.Annotations = nil },
		"an etcd with a TCP probe":        func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe.HTTPGet = nil },
		"no address yet":                  func(p *corev1.Pod) { p.Status.PodIP = "" },
	} {
		l, err := NewLaunchers(share.Divided)
		if err != nil {
			t.Fatal(err)
		}
		pod, _ := told(t, l)
		if l.address(pod) == "" {
			t.Fatal("it tells nothing to a launcher of its own")
		}
		change(pod)
		if address := l.address(pod); address != "" {
			t.Errorf("%s: it tells %s", name, address)
		}
	}
}
