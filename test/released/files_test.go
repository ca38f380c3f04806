// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package released

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// world is an EtcdCluster with its objects and its etcd.
type world struct {
	cluster *v1beta2.EtcdCluster
	objects []runtime.Object
	etcd    members
}

// members is what etcd responds, and when. The format is its own, so that no type of today changes it.
type members struct {
	Now       metav1.Time `json:"now"`
	ClusterID string      `json:"clusterID,omitempty"`
	Members   []member    `json:"members,omitempty"`
}

type member struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	PeerURL     string `json:"peerURL"`
	Learner     bool   `json:"learner,omitempty"`
	Version     string `json:"version"`
	Leader      string `json:"leader"`
	DBSize      int64  `json:"dbSize"`
	RaftTerm    int64  `json:"raftTerm"`
	RaftIndex   int64  `json:"raftIndex"`
	RaftApplied int64  `json:"raftApplied"`
}

// scheme knows the kinds of Kubernetes and of this group.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, install.Install} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// encode writes an object with its kind.
func encode(t *testing.T, s *runtime.Scheme, to runtime.Encoder, object runtime.Object) []byte {
	t.Helper()
	kinds, _, err := s.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	var out bytes.Buffer
	if err := to.Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func yamlOf(s *runtime.Scheme) runtime.Serializer {
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true, Strict: true})
}

const separator = "---\n"

// write writes path.pb, the EtcdCluster as it is stored, and path.yaml with everything.
func write(t *testing.T, path string, w *world) {
	t.Helper()
	s := scheme(t)
	etcd, err := yaml.Marshal(w.etcd)
	if err != nil {
		t.Fatal(err)
	}
	documents := []string{string(etcd), string(encode(t, s, yamlOf(s), w.cluster))}
	for _, object := range w.objects {
		documents = append(documents, string(encode(t, s, yamlOf(s), object)))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	for suffix, content := range map[string][]byte{
		".yaml": []byte(strings.Join(documents, separator)),
		".pb":   encode(t, s, protobuf.NewSerializer(s, s), w.cluster),
	} {
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads what write has written, and fails the test if anything is lost on the way. A field of the
// YAML that no type knows is an error. The stored EtcdCluster must have all that the YAML has.
func read(t *testing.T, path string) *world {
	t.Helper()
	s := scheme(t)
	text, err := os.ReadFile(path + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), separator)
	w := &world{}
	if err := yaml.UnmarshalStrict([]byte(documents[0]), &w.etcd); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, document := range documents[1:] {
		object, _, err := yamlOf(s).Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, document)
		}
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if cluster, ok := object.(*v1beta2.EtcdCluster); ok {
			w.cluster = cluster
			continue
		}
		w.objects = append(w.objects, object)
	}
	stored, err := os.ReadFile(path + ".pb")
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := protobuf.NewSerializer(s, s).Decode(stored, nil, nil)
	if err != nil {
		t.Fatalf("%s.pb: %v", path, err)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	// A release stores false for what was not said, which means the same.
	if spec := &object.(*v1beta2.EtcdCluster).Spec; !object.(*v1beta2.EtcdCluster).IsDeletionProtected() && w.cluster.Spec.DeletionProtection == nil {
		spec.DeletionProtection = nil
	}
	if diff := cmp.Diff(w.cluster, object.(*v1beta2.EtcdCluster)); diff != "" {
		t.Errorf("%s: the stored EtcdCluster is not that of the YAML (-YAML +stored):\n%s", path, diff)
	}
	return w
}
