// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func desired(namespace, name string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-x", Generation: 1, Annotations: map[string]string{"team": "shop"}},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
	}
}

// TestFind: each record gives the object that it is of; a ConfigMap that is no record gives none, and
// one without a declaration is named.
func TestFind(t *testing.T) {
	t.Parallel()
	old := resources.RecordConfigMap(desired("b", "old"), resources.Record{ClusterID: "1"})
	delete(old.Data, "declaration")
	notOwned := resources.RecordConfigMap(desired("b", "not-owned"), resources.Record{})
	notOwned.Data = map[string]string{"declaration": "{}"}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "other", Labels: resources.Labels("other")}}
	kube := fake.NewClientset(resources.RecordConfigMap(desired("a", "shop"), resources.Record{BootstrapMember: "shop-a"}), old, notOwned, other)
	found, err := Find(t.Context(), kube)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Clusters) != 1 || len(found.Incomplete) != 1 || !errors.Is(found.Incomplete[0], resources.ErrNotDeclared) {
		t.Fatalf("found %+v", found)
	}
	want := desired("a", "shop")
	if got := found.Clusters[0]; got.Namespace != "a" || got.Name != "shop" || got.UID != want.UID || got.Spec.Version != "3.6.16" || *got.Spec.Replicas != 3 || got.Annotations["team"] != "shop" {
		t.Errorf("found %+v", got)
	}
}

// TestFindDistrustsRecords: a tenant can write a record. What the API would not accept is kept apart, and so are copies of
// a record. The Secrets that a record names are listed.
func TestFindDistrustsRecords(t *testing.T) {
	t.Parallel()
	wrong, copied, secret := desired("b", "wrong"), desired("c", "shop"), desired("d", "secret")
	wrong.UID, wrong.Spec.Repository = "uid-of-wrong", "registry/etcd --privileged"
	secret.UID = "uid-of-secret"
	secret.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "of-others"}, Key: "k"}}}}}
	var records []runtime.Object
	for _, c := range []*v1beta2.EtcdCluster{desired("a", "shop"), wrong, copied, secret} {
		v1beta2.SetObjectDefaults_EtcdCluster(c)
		records = append(records, resources.RecordConfigMap(c, resources.Record{}))
	}
	found, err := Find(t.Context(), fake.NewClientset(records...))
	if err != nil {
		t.Fatal(err)
	}
	invalid := map[string]string{}
	for _, i := range found.Invalid {
		invalid[i.Cluster.Namespace+"/"+i.Cluster.Name] = i.Err.Error()
	}
	for name, want := range map[string]string{"b/wrong": "spec.repository", "a/shop": "2 records have the UID uid-of-x", "c/shop": "2 records have the UID uid-of-x"} {
		if !strings.Contains(invalid[name], want) {
			t.Errorf("%s: %q, want %q", name, invalid[name], want)
		}
	}
	if len(found.Clusters) != 1 || found.Clusters[0].Name != "secret" {
		t.Fatalf("valid: %v", found.Clusters)
	}
	if uses := Uses(found.Clusters[0]); len(uses) != 1 || !strings.Contains(uses[0], `get secrets "of-others"`) {
		t.Errorf("uses %q", uses)
	}
}

// TestSave: the objects are where the API server looks for them, encoded as it stores them, and
// with their UIDs.
func TestSave(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "saved.db")
	if err := Save(t.Context(), []*v1beta2.EtcdCluster{desired("a", "shop"), desired("b", "shop")}, "/registry/etcd.database.coreos.com", t.TempDir(), file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("the snapshot: %v, %v", info, err)
	}

	server, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if err := store(t.Context(), []*v1beta2.EtcdCluster{desired("a", "shop")}, "/registry/etcd.database.coreos.com", server.Endpoint()); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	response, err := client.Get(t.Context(), "/registry/etcd.database.coreos.com/etcdclusters/a/shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 || !bytes.HasPrefix(response.Kvs[0].Value, []byte("k8s\x00")) || !bytes.Contains(response.Kvs[0].Value, []byte("uid-of-x")) {
		t.Errorf("stored: %v", response.Kvs)
	}
	mark, err := client.Get(t.Context(), "/registry/etcd.database.coreos.com/begun")
	if err != nil || mark.Count != 1 {
		t.Errorf("an API server does not start with the snapshot while members exist: %v, %v", mark, err)
	}
}
