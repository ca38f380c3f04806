// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/recognizer"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// NewStorageFactory returns a factory that keeps the objects of a group version
// below config's prefix, encoded as mediaType. What was stored in another encoding
// is still read.
func NewStorageFactory(
	config storagebackend.Config, mediaType string, scheme *runtime.Scheme, codecs serializer.CodecFactory, version schema.GroupVersion,
) *serverstorage.DefaultStorageFactory {
	resources := serverstorage.NewResourceConfig()
	resources.EnableVersions(version)
	factory := serverstorage.NewDefaultStorageFactory(config, mediaType, codecs,
		serverstorage.NewDefaultResourceEncodingConfig(scheme), resources, nil)
	factory.AddSerializationChains(nil, func(decoders []runtime.Decoder) []runtime.Decoder {
		return []runtime.Decoder{untyped{Decoder: recognizer.NewDecoder(decoders...), group: version.Group}}
	}, schema.GroupResource{Group: version.Group, Resource: serverstorage.AllResources})
	return factory
}

// untyped clears the kind and version that a decoder leaves in an object. With one
// set of types for storage and memory the conversion that would clear them is
// skipped on some ways and not on others, and an object that was just read would
// differ from the very same one in the watch cache: an apply that changes nothing
// would then be written, and wake every watcher.
type untyped struct {
	runtime.Decoder
	group string
}

// Decode implements runtime.Decoder.
func (d untyped) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if obj != nil && gvk != nil && gvk.Group == d.group {
		if _, known := obj.(Object); known {
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
	}
	return obj, gvk, err
}
