// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/generated/informers/externalversions"
)

// exchange is what a client asked for and what it got.
type exchange struct{ path, query, contentType string }

// wiretap records the exchanges of a client.
type wiretap struct {
	next http.RoundTripper
	mu   *sync.Mutex
	seen *[]exchange
}

func tap(config *rest.Config) (*rest.Config, func() []exchange) {
	var mu sync.Mutex
	var seen []exchange
	tapped := rest.CopyConfig(config)
	tapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return &wiretap{next: next, mu: &mu, seen: &seen} })
	return tapped, func() []exchange {
		mu.Lock()
		defer mu.Unlock()
		return append([]exchange(nil), seen...)
	}
}

func (w *wiretap) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		*w.seen = append(*w.seen, exchange{request.URL.Path, request.URL.RawQuery, response.Header.Get("Content-Type")})
	}
	return response, err
}

// TestInformer runs an informer of the generated clients through the aggregator: one stream
// of protobuf brings the existing objects and then the changes.
func TestInformer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for _, name := range []string{"a", "b"} {
		create(t, namespace, newCluster(name))
	}
	config, exchanges := tap(env.admin)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(namespace))
	clusters := factory.Etcd().V1beta2().EtcdClusters()
	informer := clusters.Informer()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	if got, err := clusters.Lister().List(labels.Everything()); err != nil || len(got) != 2 {
		t.Fatalf("the informer has %v %v, want 2 clusters", got, err)
	}

	changed, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed.Spec.Replicas = ptr.To[int32](5)
	if _, err := clustersIn(namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := clustersIn(namespace).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		got, err := clusters.Lister().EtcdClusters(namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		if len(got) != 1 || *got[0].Spec.Replicas != 5 {
			return errorf("the informer has %v", got)
		}
		return nil
	})

	seen := exchanges()
	if len(seen) != 1 || !strings.Contains(seen[0].query, "sendInitialEvents=true") || !strings.Contains(seen[0].query, "watch=true") {
		t.Errorf("exchanges %+v, want one watch that begins with the existing objects", seen)
	}
	if !strings.HasPrefix(seen[0].contentType, "application/vnd.kubernetes.protobuf") {
		t.Errorf("the stream is %s, want protobuf", seen[0].contentType)
	}
}
