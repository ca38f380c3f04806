// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	etcdfuzzer "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// both is the serializer of the server, with and without the cache.
type both struct {
	plain, cached runtime.NegotiatedSerializer
	scheme        *runtime.Scheme
}

func newBoth(t testing.TB) both {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	plain := serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
	return both{plain: plain, cached: NewSerializer(plain, v1beta2.SchemeGroupVersion, clocktesting.NewFakeClock(time.Now())), scheme: scheme}
}

// encode returns the bytes that the serializer writes, and the sizes of its writes.
func encode(t testing.TB, s runtime.NegotiatedSerializer, media string, pretty bool, obj runtime.Object) (string, []int) {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), media)
	if !ok {
		t.Fatalf("no serializer for %s", media)
	}
	chosen := info.Serializer
	if pretty {
		chosen = info.PrettySerializer
	}
	var out recorder
	if err := s.EncoderForVersion(chosen, v1beta2.SchemeGroupVersion).Encode(obj, &out); err != nil {
		t.Fatal(err)
	}
	return out.String(), out.writes
}

// recorder notes the size of each write.
type recorder struct {
	bytes.Buffer
	writes []int
}

func (r *recorder) Write(data []byte) (int, error) {
	r.writes = append(r.writes, len(data))
	return r.Buffer.Write(data)
}

// expectSame checks that both serializers write the same bytes.
func (b both) expectSame(t *testing.T, name string, obj runtime.Object) {
	t.Helper()
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeYAML} {
		want, _ := encode(t, b.plain, media, false, obj)
		if got, _ := encode(t, b.cached, media, false, obj); got != want {
			t.Errorf("%s as %s:\n%q\nwant\n%q", name, media, got, want)
		}
	}
	want, _ := encode(t, b.plain, runtime.ContentTypeJSON, true, obj)
	if got, _ := encode(t, b.cached, runtime.ContentTypeJSON, true, obj); got != want {
		t.Errorf("%s as pretty JSON differs", name)
	}
}

func sample(n int) *v1beta2.EtcdClusterList {
	list := &v1beta2.EtcdClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "<next>", RemainingItemCount: ptr.To[int64](3)}}
	for i := range n {
		list.Items = append(list.Items, v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("c-%d", i), Namespace: "ns", UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: "5",
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate}},
			},
			Spec: v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
		})
	}
	return list
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	small := sample(3)
	for range 2 {
		b.expectSame(t, "a list", small)
		b.expectSame(t, "a list of many", sample(300))
	}
	b.expectSame(t, "an empty list", &v1beta2.EtcdClusterList{Items: []v1beta2.EtcdCluster{}})
	b.expectSame(t, "a list without items", &v1beta2.EtcdClusterList{})
	b.expectSame(t, "an object", &small.Items[0])
	b.expectSame(t, "a status", &metav1.Status{Message: "no"})
	named := sample(1)
	named.Items[0].Kind = "EtcdCluster"
	b.expectSame(t, "an item with a kind", named)
	if named.Kind != "" || small.Kind != "" {
		t.Error("encoding has changed the list")
	}
}

func TestSameBytesOfRandomLists(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	codecs := serializer.NewCodecFactory(b.scheme)
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, etcdfuzzer.Funcs), etcdfuzzer.Source{PCG: rand.NewPCG(1, 1)}, codecs)
	for i := range 30 {
		for _, list := range []runtime.Object{&v1beta2.EtcdClusterList{}, &v1beta2.EtcdBackupList{}, &v1beta2.EtcdRestoreList{}} {
			filler.Fill(list)
			for range 2 {
				b.expectSame(t, fmt.Sprintf("random %T %d", list, i), list)
			}
		}
	}
}

// jsonOf encodes with the cache, as JSON and as protobuf, and returns the JSON.
func (b both) jsonOf(t *testing.T, list runtime.Object) string {
	t.Helper()
	encode(t, b.cached, runtime.ContentTypeProtobuf, false, list)
	content, _ := encode(t, b.cached, runtime.ContentTypeJSON, false, list)
	return content
}

func TestItemsAreEncodedOnce(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	list := sample(2)
	before := b.jsonOf(t, list)
	// The same object in memory: what it encodes to was remembered. No server changes an object
	// like this; here it shows that the cache was used.
	list.Items[0].Spec.Version = "3.5.0"
	if b.jsonOf(t, list) != before {
		t.Error("an item was encoded twice")
	}
}

// TestAllocators: the generic server encodes with an allocator if an encoder takes one. The result is
// the same, and remembered.
func TestAllocators(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for _, info := range b.cached.SupportedMediaTypes() {
		allocating, ok := b.cached.EncoderForVersion(info.Serializer, v1beta2.SchemeGroupVersion).(runtime.EncoderWithAllocator)
		if !ok {
			continue
		}
		list := sample(2)
		want, _ := encode(t, b.plain, info.MediaType, false, list)
		for range 2 {
			var got bytes.Buffer
			if err := allocating.EncodeWithAllocator(list, &got, &runtime.Allocator{}); err != nil || got.String() != want {
				t.Errorf("%s: got %q and %v, want %q", info.MediaType, got.String(), err, want)
			}
			if info.MediaType != runtime.ContentTypeYAML {
				list.Items[0].Spec.Version = "3.5.0" // It is not read again.
			}
		}
	}
}

// TestOtherVersions: lists of another version than that of the objects are left to the next encoder.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for _, info := range b.cached.SupportedMediaTypes() {
		for _, version := range []runtime.GroupVersioner{metav1.SchemeGroupVersion, runtime.InternalGroupVersioner} {
			if made, ok := b.cached.EncoderForVersion(info.Serializer, version).(*encoder); ok {
				t.Errorf("%s of %s: got %v", info.MediaType, version.Identifier(), made)
			}
		}
	}
}

func TestOtherObjectsAreEncodedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta2.EtcdCluster){
		"another version": func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "6" },
		"another object of the same name": func(c *v1beta2.EtcdCluster) {
			c.UID = "other"
		},
		"the same version after a restore of the storage": func(c *v1beta2.EtcdCluster) {
			c.ManagedFields = slices.Clone(c.ManagedFields)
		},
	} {
		b := newBoth(t)
		list := sample(2)
		b.jsonOf(t, list)
		list.Items[0].Spec.Version = "3.5.0"
		change(&list.Items[0])
		if !strings.Contains(b.jsonOf(t, list), "3.5.0") {
			t.Errorf("%s: the old content is listed", name)
		}
		b.expectSame(t, name, list)
	}
}

// TestObjectsWithoutIdentity: what a dry run returns may have no version.
func TestObjectsWithoutIdentity(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta2.EtcdCluster){
		"no UID":            func(c *v1beta2.EtcdCluster) { c.UID = "" },
		"no version":        func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "" },
		"no managed fields": func(c *v1beta2.EtcdCluster) { c.ManagedFields = nil },
	} {
		b := newBoth(t)
		list := sample(1)
		change(&list.Items[0])
		b.jsonOf(t, list)
		list.Items[0].Spec.Version = "3.5.0"
		if !strings.Contains(b.jsonOf(t, list), "3.5.0") {
			t.Errorf("%s: the encoding was remembered", name)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	space := newSpace(100)
	c, other := newCache(space), newCache(space)
	list := sample(30)
	other.put(&list.Items[0], make([]byte, 20), now)
	for i := range list.Items {
		c.put(&list.Items[i], make([]byte, 10), now)
	}
	if len(c.entries) != 8 || space.used.Load() != 100 {
		t.Errorf("%d entries with %d bytes, want 8 with 100", len(c.entries), space.used.Load())
	}
	// A new version replaces the old one.
	list.Items[0].ResourceVersion = "6"
	c.put(&list.Items[0], make([]byte, 5), now)
	if space.used.Load() != 95 || c.find(&list.Items[0], now) == nil {
		t.Errorf("%d bytes after a change, want 95", space.used.Load())
	}
	// What lists use stays.
	now = now.Add(unusedAfter + time.Second)
	c.find(&list.Items[0], now)
	c.shrink(now)
	other.shrink(now)
	if len(c.entries) != 1 || len(other.entries) != 0 || space.used.Load() != 5 || c.find(&list.Items[0], now) == nil {
		t.Errorf("%d entries with %d bytes after a while, want 1 with 5", len(c.entries), space.used.Load())
	}
	// With less space, as much as necessary is forgotten.
	for i := range list.Items[1:9] {
		c.put(&list.Items[i+1], make([]byte, 10), now)
	}
	space.limit.Store(40)
	c.shrink(now)
	if used := space.used.Load(); used < 30 || used > 40 {
		t.Errorf("%d bytes after the limit fell to 40", used)
	}
}

func TestLimitFollowsGOMEMLIMIT(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ memoryLimit, others, want int64 }{
		"no GOMEMLIMIT":                      {math.MaxInt64, 100 << 20, smallestSpace},
		"much free memory":                   {800 << 20, 200 << 20, 200 << 20},
		"objects take nearly everything":     {800 << 20, 500 << 20, smallestSpace},
		"objects take more than GOMEMLIMIT":  {800 << 20, 900 << 20, smallestSpace},
		"a GOMEMLIMIT for a small server":    {100 << 20, 20 << 20, smallestSpace},
		"heap was measured before encodings": {800 << 20, -50 << 20, 300 << 20},
	} {
		if got := limitOf(row.memoryLimit, row.others); got != row.want {
			t.Errorf("%s: %d MiB, want %d", name, got>>20, row.want>>20)
		}
	}
}

// TestUnusedEncodingsAreForgotten: the memory of a list is free some minutes after the last list.
func TestUnusedEncodingsAreForgotten(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	synctest.Test(t, func(t *testing.T) {
		cached := NewSerializer(b.plain, v1beta2.SchemeGroupVersion, clock.RealClock{})
		b.cached = cached
		ctx, cancel := context.WithCancel(t.Context())
		go cached.Run(ctx)
		b.jsonOf(t, sample(3))
		<-time.After(unusedAfter)
		if cached.space.used.Load() == 0 {
			t.Error("encodings were forgotten too early")
		}
		<-time.After(2 * shrinkPeriod)
		if used := cached.space.used.Load(); used != 0 {
			t.Errorf("%d bytes are still remembered", used)
		}
		if got := cached.space.limit.Load(); got < smallestSpace {
			t.Errorf("the limit is %d bytes", got)
		}
		cancel()
		synctest.Wait()
	})
}

// TestTooLargeList: a list is not remembered if there is space only for a small part of it.
func TestTooLargeList(t *testing.T) {
	t.Parallel()
	list := itemsOf(sample(30))
	size := list.objects[0].Size()
	list.following = 0
	fits := func(objects int) bool { return newCache(newSpace(int64(objects*size))).isUseful(list, size) }
	if !fits(15) {
		t.Error("a list of twice the limit is not remembered")
	}
	if fits(14) {
		t.Error("a list of more than twice the limit is remembered")
	}
	list.following = 30
	if fits(15) {
		t.Error("a page of a list of four times the limit is remembered")
	}
}

// TestFirstWrite: the size of the first write tells the writer of responses whether to compress.
func TestFirstWrite(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		_, plain := encode(t, b.plain, media, false, sample(1000))
		_, cached := encode(t, b.cached, media, false, sample(1000))
		if cached[0] != plain[0] {
			t.Errorf("%s: the first write has %d bytes, want %d", media, cached[0], plain[0])
		}
		if len(cached) > len(plain)/10 {
			t.Errorf("%s: %d writes, without the cache %d", media, len(cached), len(plain))
		}
	}
}

func TestConcurrentLists(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	shared := sample(50)
	want, _ := encode(t, b.plain, runtime.ContentTypeJSON, false, shared)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				list := *shared
				if got, _ := encode(t, b.cached, runtime.ContentTypeJSON, false, &list); got != want {
					t.Error("a list differs")
				}
				encode(t, b.cached, runtime.ContentTypeProtobuf, false, &list)
			}
		})
	}
	group.Wait()
}

func BenchmarkList(b *testing.B) {
	s := newBoth(b)
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for name, used := range map[string]runtime.NegotiatedSerializer{"cached": s.cached, "plain": s.plain} {
			b.Run(media+"/"+name, func(b *testing.B) {
				list := sample(1000)
				b.ReportAllocs()
				for b.Loop() {
					encode(b, used, media, false, list)
				}
			})
		}
	}
}
