// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// hostileStreams is more than the API server streams for all namespaces, and shareOfStreams what it streams for one.
	hostileStreams, shareOfStreams = 12, 4
	// hostileConfigMaps of this size have the labels of a record.
	hostileConfigMaps, hostileBytes = 20, 900 << 10
	// honestRequests is how many clusters the honest tenant creates and gets in one measurement.
	honestRequests = 30
	// hostilePause is between two requests of a load, which shares the machine with other tests.
	hostilePause = 5 * time.Millisecond
)

// hostile is a tenant that requests as much as it can of all that namespaces share.
type hostile struct {
	*testing.T

	*source

	client versioned.Interface
	// created and updated count what was accepted, tooMany and tooFast what was rejected.
	created, tooMany, updated, tooFast, failed atomic.Int64
}

// TestHostileNamespace runs an honest tenant beside a hostile one. It asserts what is rejected and what is not, and logs how
// much longer the requests of the honest tenant take.
func TestHostileNamespace(t *testing.T) {
	honest := newSource(t)
	grant(t, honest.namespace, "honest-of-"+honest.namespace, "get", "create")
	client := userClient(t, "honest-of-"+honest.namespace)
	alone := honestly(t, client, honest.namespace, "alone")

	h := newHostile(t)
	h.labelConfigMaps()
	rejected := h.openStreams()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { h.repeat(ctx, h.createCluster) })
	load.Go(func() { h.repeat(ctx, h.updateLargest) })
	eventually(t, func(context.Context) error {
		if h.tooMany.Load() == 0 || h.tooFast.Load() == 0 {
			return errorf("%d clusters, %d updates", h.created.Load(), h.updated.Load())
		}
		return nil
	})
	beside := honestly(t, client, honest.namespace, "beside")
	if file, said, err := honest.get(t); err != nil {
		t.Errorf("snapshot of the honest tenant: %v: %s", err, said)
	} else {
		honest.mustBeWhole(t, file)
	}
	cancel()
	load.Wait()

	t.Logf("%d creates and gets take %s alone, and %.1f times as long beside %d creates, %d updates and %d rejections of the hostile tenant",
		honestRequests, alone.Round(time.Millisecond), beside.Seconds()/alone.Seconds(), h.created.Load(), h.updated.Load(), h.tooMany.Load()+h.tooFast.Load())
	if n := h.created.Load() + 2; n > objectLimit { // beside the one with a member, and the largest
		t.Errorf("the hostile tenant has %d clusters, and the limit is %d", n, objectLimit)
	}
	if least := int64(hostileStreams - shareOfStreams); rejected < least {
		t.Errorf("%d of %d streams of the hostile tenant were rejected, want %d", rejected, hostileStreams, least)
	}
	if n := h.failed.Load(); n > 0 {
		t.Errorf("%d requests of the hostile tenant failed for another reason", n)
	}
	if bytes := cachedConfigMaps(t, h.namespace); bytes > 1<<20 {
		t.Errorf("the controller keeps %d bytes of %d ConfigMaps", bytes, hostileConfigMaps)
	}
}

// honestly creates and gets clusters, and returns how long that took. No request may be rejected.
func honestly(t *testing.T, client versioned.Interface, namespace, prefix string) time.Duration {
	t.Helper()
	clusters := client.EtcdV1beta2().EtcdClusters(namespace)
	eventually(t, func(ctx context.Context) error { // the authorizer learns of the role a moment later
		_, err := clusters.Get(ctx, "a", metav1.GetOptions{})
		return err
	})
	begun := time.Now()
	for i := range honestRequests {
		name := prefix + "-" + strconv.Itoa(i)
		if _, err := clusters.Create(t.Context(), newCluster(name), metav1.CreateOptions{}); err != nil {
			t.Errorf("create %s: %v", name, err)
		}
		if _, err := clusters.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("get %s: %v", name, err)
		}
	}
	return time.Since(begun)
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{T: t, source: newSource(t)}
	user := "hostile-of-" + h.namespace
	grant(t, h.namespace, user, "*")
	h.client = userClient(t, user)
	large := newCluster("large")
	large.Annotations = map[string]string{"a": strings.Repeat("x", genericstore.MaxDeclaredBytes-4096)}
	eventually(t, func(ctx context.Context) error {
		_, err := h.client.EtcdV1beta2().EtcdClusters(h.namespace).Create(ctx, large, metav1.CreateOptions{})
		return err
	})
	t.Cleanup(func() { // what other tests list
		if err := clustersIn(h.namespace).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	return h
}

// repeat sends requests until ctx ends.
func (h *hostile) repeat(ctx context.Context, request func(ctx context.Context, i int)) {
	for i := 0; ctx.Err() == nil; i++ {
		request(ctx, i)
		select {
		case <-ctx.Done():
		case <-time.After(hostilePause):
		}
	}
}

func (h *hostile) createCluster(ctx context.Context, i int) {
	_, err := h.client.EtcdV1beta2().EtcdClusters(h.namespace).Create(ctx, newCluster(fmt.Sprintf("c-%04d", i)), metav1.CreateOptions{})
	h.count(ctx, err, &h.created)
}

func (h *hostile) updateLargest(ctx context.Context, i int) {
	err := h.client.EtcdV1beta2().RESTClient().Patch(types.MergePatchType).Namespace(h.namespace).Resource("etcdclusters").Name("large").
		MaxRetries(0).Body([]byte(`{"metadata":{"annotations":{"i":"` + strconv.Itoa(i) + `"}}}`)).Do(ctx).Error()
	h.count(ctx, err, &h.updated)
}

// count counts the outcome of a write. While the namespace has no budget, creates are rejected for that reason, too.
func (h *hostile) count(ctx context.Context, err error, accepted *atomic.Int64) {
	switch {
	case err == nil:
		accepted.Add(1)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "which is the limit for one namespace"):
		h.tooMany.Add(1)
	case apierrors.IsTooManyRequests(err):
		h.tooFast.Add(1)
	case ctx.Err() == nil:
		h.failed.Add(1)
		h.Errorf("write of the hostile tenant: %v", err)
	}
}

// openStreams requests snapshots of a slow member until the test ends, and returns how many were rejected for the share of
// the namespace.
func (h *hostile) openStreams() (rejected int64) {
	h.link.Limit(h.size / 60)
	var open atomic.Int64
	var group sync.WaitGroup
	for range hostileStreams {
		ended := make(chan struct{})
		group.Go(func() { <-ended })
		go func() {
			stream, err := env.etcd.EtcdV1beta2().RESTClient().Get().AbsPath(raw(h.namespace, "a", "proxy/snapshot")).MaxRetries(0).Stream(h.Context())
			if apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), "which are for other namespaces") {
				open.Add(1)
			}
			close(ended)
			if err == nil {
				_, _ = io.Copy(io.Discard, stream)
				_ = stream.Close()
			}
		}()
	}
	group.Wait()
	return open.Load()
}

func (h *hostile) labelConfigMaps() {
	for i := range hostileConfigMaps {
		_, err := env.client.CoreV1().ConfigMaps(h.namespace).Create(h.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%04d-record", i), Labels: resources.Labels(fmt.Sprintf("c-%04d", i))},
			Data:       map[string]string{"declaration": strings.Repeat("x", hostileBytes/2), "recovery": strings.Repeat("x", hostileBytes/2)},
		}, metav1.CreateOptions{})
		if err != nil {
			h.Fatal(err)
		}
	}
}

// cachedConfigMaps returns how many bytes the controller keeps of the ConfigMaps of a namespace.
func cachedConfigMaps(t *testing.T, namespace string) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(env.client, 0, informers.WithNamespace(namespace), informers.WithTransform(func(object any) (any, error) {
		if cm, is := object.(*corev1.ConfigMap); is {
			return resources.CachedRecord(cm), nil
		}
		return object, nil
	}))
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	kept, err := lister.List(labels.SelectorFromSet(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) < hostileConfigMaps {
		t.Errorf("%d ConfigMaps are in the cache", len(kept))
	}
	bytes := 0
	for _, cm := range kept {
		bytes += cm.Size()
	}
	return bytes
}
