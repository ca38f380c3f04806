// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/recognizer"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// NewFactory returns a factory that stores the objects of a group version below config's
// prefix, encoded as mediaType. The factory also reads objects that were stored in another
// encoding.
func NewFactory(
	config storagebackend.Config, mediaType string, scheme *runtime.Scheme, codecs serializer.CodecFactory, version schema.GroupVersion,
) *serverstorage.DefaultStorageFactory {
	resources := serverstorage.NewResourceConfig()
	resources.EnableVersions(version)
	factory := serverstorage.NewDefaultStorageFactory(config, mediaType, codecs,
		serverstorage.NewDefaultResourceEncodingConfig(scheme), resources, nil)
	factory.AddSerializationChains(nil, func(decoders []runtime.Decoder) []runtime.Decoder {
		return []runtime.Decoder{typeMetaClearer{Decoder: recognizer.NewDecoder(decoders...), group: version.Group}}
	}, schema.GroupResource{Group: version.Group, Resource: serverstorage.AllResources})
	return factory
}

// typeMetaClearer clears the kind and the version that a decoder leaves in an object of the
// group. This API has one set of types for storage and memory. The conversion that clears
// kind and version elsewhere therefore runs on some paths only, and an object from etcd would
// differ from the same object in the watch cache. An apply without changes would then be
// written and sent to every watcher.
type typeMetaClearer struct {
	runtime.Decoder
	group string
}

// Decode implements runtime.Decoder.
func (c typeMetaClearer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := c.Decoder.Decode(data, defaults, into)
	if obj != nil && gvk != nil && gvk.Group == c.group {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, gvk, err
}
