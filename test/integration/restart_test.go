// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/generated/informers/externalversions"
)

// The tests in this file stop servers, so none of them runs beside another.

// restart ends our server with a signal, starts it again and returns when the
// kube-apiserver serves the group.
func restart(t *testing.T, signal syscall.Signal, args ...string) {
	t.Helper()
	begun := time.Now()
	if err := env.server.Stop(signal, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	stopped := time.Since(begun)
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	if err := env.startServer(ctx, args...); err != nil {
		t.Fatal(err)
	}
	ready := time.Since(begun)
	if err := env.waitRegistered(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v: stopped after %s, ready after %s, served again after %s",
		signal, stopped.Round(time.Millisecond), ready.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
}

const numberAnnotation = "example.com/number"

// write stores a number in the cluster "written" and returns when it is acknowledged.
func write(ctx context.Context, namespace string, n int64) error {
	annotations := map[string]string{numberAnnotation: fmt.Sprint(n)}
	got, err := clustersIn(namespace).Get(ctx, "written", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cluster := newCluster("written")
		cluster.Annotations = annotations
		_, err = clustersIn(namespace).Create(ctx, cluster, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	got.Annotations = annotations
	_, err = clustersIn(namespace).Update(ctx, got, metav1.UpdateOptions{})
	return err
}

// TestKilledServer kills the server during writes, and checks that all acknowledged writes are
// stored and that a watch continues without a gap.
func TestKilledServer(t *testing.T) {
	namespace := newNamespace(t)
	factory := externalversions.NewSharedInformerFactoryWithOptions(env.etcd, 0, externalversions.WithNamespace(namespace))
	clusters := factory.Etcd().V1beta2().EtcdClusters()
	informer := clusters.Informer()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	create(t, namespace, newCluster("before"))
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}

	var acknowledged atomic.Int64
	written := make(chan struct{})
	go func() {
		defer close(written)
		for write(ctx, namespace, acknowledged.Load()+1) == nil {
			acknowledged.Add(1)
		}
	}()
	eventually(t, func(context.Context) error {
		if n := acknowledged.Load(); n < 20 {
			return errorf("%d writes were acknowledged", n)
		}
		return nil
	})
	if err := env.killServer(); err != nil {
		t.Fatal(err)
	}
	<-written
	restart(t, syscall.SIGKILL)

	got, err := clustersIn(namespace).Get(t.Context(), "written", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The write that was under way may be there or not.
	last := acknowledged.Load()
	if n := got.Annotations[numberAnnotation]; n != fmt.Sprint(last) && n != fmt.Sprint(last+1) {
		t.Errorf("write %s is stored, %d were acknowledged", n, last)
	}

	got.Spec.Replicas = ptr.To[int32](5)
	if _, err := clustersIn(namespace).Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		seen, err := clusters.Lister().EtcdClusters(namespace).Get("written")
		if err != nil {
			return err
		}
		if *seen.Spec.Replicas != 5 {
			return errorf("the watch shows size %d", *seen.Spec.Replicas)
		}
		_, err = clusters.Lister().EtcdClusters(namespace).Get("before")
		return err
	})
}

// TestTerminatedServer ends by itself, soon and without an error.
func TestTerminatedServer(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	old := env.server
	restart(t, syscall.SIGTERM)
	if old.Err() != nil {
		t.Errorf("it ended with %v\n%s", old.Err(), old.Tail())
	}
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// deniedParameters is a request for the parameters of an admission policy, in every namespace.
var deniedParameters = regexp.MustCompile(`cannot (list|watch) resource \\*"configmaps\\*" in API group \\*"\\*" at the cluster scope`)

// TestRightsSuffice: the server has the rights of its manifest and no more, and it has never
// asked for another. It runs before the kube-apiserver is stopped, because a starting
// kube-apiserver rejects all requests.
func TestRightsSuffice(t *testing.T) {
	content, err := os.ReadFile(env.server.Log())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(string(content)) {
		// TestPolicyWithParameters shows what happens without the right to read parameters.
		if strings.Contains(line, serverUser) && strings.Contains(line, "cannot") && !deniedParameters.MatchString(line) {
			t.Error(line)
		}
	}
}

// TestKubeAway stops the kube-apiserver. Requests that do not need it are served, requests that
// need it are rejected, and both are served when it runs again.
func TestKubeAway(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	grant(t, namespace, "away", "get")
	proxy, user := transportFor(t, keyPair(t, env.pki.ProxyClient)), directClient(t, "away")
	admin := map[string]string{"X-Remote-User": "admin"}
	if code := directGet(t, proxy, namespace, "a", admin); code != http.StatusOK {
		t.Fatalf("proxied: status %d", code)
	}

	if err := env.kube.Stop(syscall.SIGKILL, testPatience); err != nil {
		t.Fatal(err)
	}
	if code := directGet(t, proxy, namespace, "a", admin); code != http.StatusOK {
		t.Errorf("proxied, while it is away: status %d, want 200", code)
	}
	begun := time.Now()
	if code := directGet(t, user, namespace, "a", nil); code == http.StatusOK {
		t.Error("a request was served without authorization")
	} else {
		t.Logf("direct, while it is away: status %d after %s", code, time.Since(begun).Round(time.Millisecond))
	}

	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	if err := env.restartKube(ctx); err != nil {
		t.Fatal(err)
	}
	if err := env.waitRegistered(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-env.server.Done():
		t.Fatalf("our server ended: %v", env.server.Err())
	default:
	}
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, func(context.Context) error {
		if code := directGet(t, user, namespace, "a", nil); code != http.StatusOK {
			return errorf("direct: status %d", code)
		}
		return nil
	})
}
