// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func TestIsOriginalOperator(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    bool
	}{
		"operator":        {[]string{"etcd-operator", "-cluster-wide"}, true},
		"backup operator": {[]string{"/usr/local/bin/etcd-backup-operator"}, true},
		"this controller": {[]string{"/controller"}, false},
		"no command":      {nil, false},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Command: c.command}}
		if got := IsOriginalOperator(d); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestWithoutOwners(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdCluster", Name: "a"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "b"},
	}}}
	kept, owned := WithoutOwners(pod)
	if !owned || len(kept) != 1 || kept[0].Name != "b" {
		t.Errorf("got %v, %v", kept, owned)
	}
	pod.OwnerReferences = kept
	if kept, owned = WithoutOwners(pod); owned || len(kept) != 1 {
		t.Errorf("got %v, %v", kept, owned)
	}
	// An empty list is written as such: null would leave the references where they are.
	if kept, _ = WithoutOwners(&corev1.Pod{}); kept == nil {
		t.Error("the list is null")
	}
}

func TestIsOfThisOperator(t *testing.T) {
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"pod of the original":     {metav1.ObjectMeta{Labels: map[string]string{"app": "etcd"}, Annotations: map[string]string{"etcd.version": "3.3.27"}}, false},
		"pod of this operator":    {metav1.ObjectMeta{Annotations: map[string]string{resources.AnnotationTemplate: "x"}}, true},
		"object with a finalizer": {metav1.ObjectMeta{Finalizers: []string{resources.Finalizer}}, true},
	} {
		if got := IsOfThisOperator(&corev1.Pod{ObjectMeta: c.meta}); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestExported: a manifest that another API server accepts as new.
func TestExported(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdBackup", "spec": map[string]any{"storageType": "S3"}, "status": map[string]any{"succeeded": true},
		"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"c": "d"}, "uid": "1", "resourceVersion": "2", "generation": int64(3),
			"creationTimestamp": "x", "managedFields": []any{}, "selfLink": "y", "finalizers": []any{"backup-operator-periodic"}, "ownerReferences": []any{},
			"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
	}}
	want := map[string]any{
		"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdBackup", "spec": map[string]any{"storageType": "S3"},
		"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"c": "d"}},
	}
	if got := Exported(object).Object; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if object.GetUID() != "1" {
		t.Error("the object itself was changed")
	}
}

// member is a pod as the original etcd-operator creates it.
func member(cluster, name string, ready, secure bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{OriginalClusterLabel: cluster}}}
	p.Spec.Containers = []corev1.Container{{Name: "etcd"}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if secure {
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{MountPath: "/etc/etcdtls/operator/etcd-tls"}}
	}
	return p
}

func TestReadyMember(t *testing.T) {
	terminating := member("a", "terminating", true, false)
	terminating.DeletionTimestamp = &metav1.Time{}
	pods := []corev1.Pod{member("a", "unready", false, false), member("b", "other", true, false), terminating, member("a", "good", true, false)}
	if got := ReadyMember(pods, "a"); got == nil || got.Name != "good" {
		t.Errorf("got %v", got)
	}
	if got := ReadyMember(pods[:3], "a"); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestCommands(t *testing.T) {
	plain, secure := member("a", "x", true, false), member("a", "x", true, true)
	for name, c := range map[string]struct {
		command []string
		want    []string
	}{
		"status":          {StatusCommand(&plain), []string{"ETCDCTL_API=3 etcdctl --endpoints=http://localhost:2379 -w json endpoint status"}},
		"status, TLS":     {StatusCommand(&secure), []string{"--endpoints=https://localhost:2379", "--cert=/etc/etcdtls/operator/etcd-tls/etcd-client.crt", "--cacert=/etc/etcdtls/operator/etcd-tls/etcd-client-ca.crt"}},
		"snapshot":        {SnapshotCommand(&plain), []string{`trap 'rm -f "$f" "$f.part"' EXIT`, `snapshot save "$f" >&2; cat "$f"`}},
		"snapshot by TLS": {SnapshotCommand(&secure), []string{"--key=/etc/etcdtls/operator/etcd-tls/etcd-client.key"}},
	} {
		if len(c.command) != 3 || c.command[0] != "/bin/sh" || c.command[1] != "-ec" {
			t.Fatalf("%s: %q", name, c.command)
		}
		for _, want := range c.want {
			if !strings.Contains(c.command[2], want) {
				t.Errorf("%s: %q is missing in %q", name, want, c.command[2])
			}
		}
	}
}

func TestReadStatus(t *testing.T) {
	// What etcdctl 3.3 prints.
	const output = `[{"Endpoint":"http://localhost:2379","Status":{"header":{"cluster_id":1,"member_id":2,"revision":812,"raft_term":3},"version":"3.3.27","dbSize":20480,"leader":2,"raftIndex":9,"raftTerm":3}}]`
	status, err := ReadStatus([]byte(output + "\n"))
	if err != nil || status.Version != "3.3.27" || status.Revision != 812 {
		t.Errorf("got %+v, %v", status, err)
	}
	for _, output := range []string{"", "null", "[]", "[{}]", "no JSON"} {
		if _, err := ReadStatus([]byte(output)); !errors.Is(err, ErrStatus) {
			t.Errorf("%q: got %v", output, err)
		}
	}
}

func TestSourceFlags(t *testing.T) {
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	cluster.SetName("a")
	cluster.SetNamespace("b")
	if got := SourceFlags(cluster); got != "--endpoints=http://a-client.b.svc:2379" {
		t.Errorf("got %s", got)
	}
	cluster.Object["spec"] = map[string]any{"TLS": map[string]any{"static": map[string]any{"operatorSecret": "client"}}}
	if got := SourceFlags(cluster); got != "--endpoints=https://a-client.b.svc:2379 --tls-secret=client" {
		t.Errorf("got %s", got)
	}
}
