// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"bufio"
	"context"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Serializer is a serializer that remembers the encodings of the items of lists, as JSON and as
// protobuf, in the version that is also the in-memory version. It leaves every other object, format
// and version to another serializer.
type Serializer struct {
	runtime.NegotiatedSerializer

	version  schema.GroupVersion
	clock    clock.WithTicker
	encoders map[runtime.Encoder]listEncoder
	space    *space
	caches   []*cache
}

// listEncoder encodes the lists of one format.
type listEncoder interface {
	// encode writes the list, whose items are given. It returns false, and writes nothing, if it
	// cannot encode the list; the next encoder encodes it then.
	encode(next runtime.Encoder, list runtime.Object, items items, w io.Writer) (bool, error)
}

// NewSerializer returns a serializer that leaves to next what is not a list of the version. Without Run,
// encodings are never forgotten, and take at most 64 MiB.
func NewSerializer(next runtime.NegotiatedSerializer, version schema.GroupVersion, c clock.WithTicker) *Serializer {
	s := &Serializer{
		NegotiatedSerializer: next, version: version, clock: c, encoders: map[runtime.Encoder]listEncoder{}, space: newSpace(smallestSpace),
	}
	for _, info := range next.SupportedMediaTypes() {
		cache := newCache(s.space)
		switch info.MediaType {
		case runtime.ContentTypeJSON:
			s.encoders[info.Serializer] = &jsonLists{cache: cache, clock: c}
		case runtime.ContentTypeProtobuf:
			s.encoders[info.Serializer] = &protobufLists{cache: cache, clock: c}
		default:
			continue
		}
		s.caches = append(s.caches, cache)
	}
	return s
}

// Run adjusts the memory of encodings to GOMEMLIMIT and to the rest of the heap, and forgets
// encodings that no list uses, until the context ends.
func (s *Serializer) Run(ctx context.Context) {
	ticker := s.clock.NewTicker(shrinkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			s.space.adjust()
			for _, cache := range s.caches {
				cache.shrink(s.clock.Now())
			}
		}
	}
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s *Serializer) EncoderForVersion(serializer runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	next := s.NegotiatedSerializer.EncoderForVersion(serializer, version)
	if lists := s.encoders[serializer]; lists != nil && version.Identifier() == s.version.Identifier() {
		return &encoder{Encoder: next, lists: lists}
	}
	return next
}

type encoder struct {
	runtime.Encoder
	lists listEncoder
}

var _ runtime.EncoderWithAllocator = &encoder{}

// Encode implements runtime.Encoder.
func (e *encoder) Encode(obj runtime.Object, w io.Writer) error {
	return e.encode(e.Encoder, obj, w)
}

// EncodeWithAllocator implements runtime.EncoderWithAllocator, which the generic server prefers to Encode.
func (e *encoder) EncodeWithAllocator(obj runtime.Object, w io.Writer, memory runtime.MemoryAllocator) error {
	if next, ok := e.Encoder.(runtime.EncoderWithAllocator); ok {
		return e.encode(runtime.NewEncoderWithAllocator(next, memory), obj, w)
	}
	return e.Encode(obj, w)
}

func (e *encoder) encode(next runtime.Encoder, obj runtime.Object, w io.Writer) error {
	if items := itemsOf(obj); len(items.objects) > 0 {
		if done, err := e.lists.encode(next, obj, items, w); done || err != nil {
			return err
		}
	}
	return next.Encode(obj, w)
}

// writeSize is how much is written at once: each write to a connection wakes the goroutine that
// serves the connection.
const writeSize = 64 << 10

// buffers holds writers of that size.
var buffers sync.Pool

// writeList writes the first bytes by themselves, as the generic server does. By the size of the
// first write, the writer of the response knows that the list is a stream. It compresses a stream
// that becomes long.
func writeList(w io.Writer, first []byte, rest func(w io.Writer) error) error {
	if _, err := w.Write(first); err != nil {
		return err
	}
	buffered, ok := buffers.Get().(*bufio.Writer)
	if !ok {
		buffered = bufio.NewWriterSize(w, writeSize)
	}
	buffered.Reset(w)
	defer func() {
		buffered.Reset(nil)
		buffers.Put(buffered)
	}()
	if err := rest(buffered); err != nil {
		return err
	}
	return buffered.Flush()
}
