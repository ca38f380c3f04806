// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestTemplateHashStays pins hashes. If one changes, the members of every cluster like
// it restart when the controller is updated: change the code, not the hash.
func TestTemplateHashStays(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`: "35ead6788be01994afb8",
		`{size: 3, version: 3.6.16, repository: r/etcd, services: {client: {type: NodePort}}, pod: {busyboxImage: b, DNSTimeoutInSecond: 3, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce]}}}`: "35ead6788be01994afb8",
		`{pod: {}, etcd: {}}`: "35ead6788be01994afb8",
		`{pod: {resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1024Mi}}, etcdEnv: [{name: A, value: b}], nodeSelector: {disk: ssd}}, etcd: {snapshotCount: 5000, heartbeatInterval: 100ms, extraArgs: [--a=b]}}`: "bead1c62e5a5a31eca1b",
		`{pod: {resources: {requests: {memory: 1024Mi, cpu: "0.1"}, limits: {memory: 1Gi}}, etcdEnv: [{value: b, name: A}], nodeSelector: {disk: ssd}}, etcd: {extraArgs: [--a=b], snapshotCount: 5000, heartbeatInterval: 0.1s}}`: "bead1c62e5a5a31eca1b",
	} {
		c := &v1beta2.EtcdCluster{}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if got := TemplateHash(c); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

// TestTemplateHashTells changes every field of the policy for pods and of etcd's options:
// whatever a user changes must reach the pods, unless it is known not to concern them.
func TestTemplateHashTells(t *testing.T) {
	indifferent := map[string]bool{
		"busyboxImage": true, "DNSTimeoutInSecond": true, "ClusterDomain": true,
		"persistentVolumeClaimSpec": true, "persistentVolumeClaimRetentionPolicy": true,
	}
	values := map[string]string{
		"labels": `{"a":"b"}`, "annotations": `{"a":"b"}`, "nodeSelector": `{"a":"b"}`, "affinity": `{"nodeAffinity":{}}`, "antiAffinity": `true`,
		"resources": `{"limits":{"cpu":"1"}}`, "tolerations": `[{"key":"a"}]`, "etcdEnv": `[{"name":"a"}]`, "securityContext": `{"runAsUser":1}`,
		"topologySpreadConstraints": `[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}]`, "priorityClassName": `"a"`,
		"imagePullSecrets": `[{"name":"a"}]`, "imagePullPolicy": `"Always"`, "terminationGracePeriodSeconds": `5`, "containerSecurityContext": `{"runAsUser":1}`,
		"persistentVolumeClaimSpec": `{"volumeName":"a"}`, "persistentVolumeClaimRetentionPolicy": `{"whenDeleted":"Retain"}`,
		"busyboxImage": `"a"`, "DNSTimeoutInSecond": `5`, "ClusterDomain": `".a"`,
		"quotaBackendBytes": `"8Gi"`, "autoCompaction": `{"mode":"Periodic","retention":"1h"}`, "snapshotCount": `5`, "heartbeatInterval": `"1s"`,
		"electionTimeout": `"5s"`, "extraArgs": `["--a=b"]`,
	}
	plain := TemplateHash(&v1beta2.EtcdCluster{})
	check := func(part string, of reflect.Type) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			value, known := values[name]
			if !known {
				t.Errorf("spec.%s.%s is new: does it concern the pods?", part, name)
				continue
			}
			c := &v1beta2.EtcdCluster{}
			if err := json.Unmarshal([]byte(`{"`+part+`":{"`+name+`":`+value+`}}`), &c.Spec); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if (TemplateHash(c) == plain) != indifferent[name] {
				t.Errorf("spec.%s.%s: a change of it restarts members: %t", part, name, indifferent[name])
			}
		}
	}
	check("pod", reflect.TypeFor[v1beta2.PodPolicy]())
	check("etcd", reflect.TypeFor[v1beta2.EtcdOptions]())
}

func TestTemplateNotes(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{AnnotationRestart: "monday"}}}
	c.Spec.Version = "3.6.1"
	pod := Pod(c, MemberPod{Name: "c-a"})
	if got := pod.Annotations; got[AnnotationTemplate] != TemplateHash(c) || got[AnnotationRestart] != "monday" {
		t.Errorf("a new pod says %v", got)
	}
	if _, changed := Adopted(c, pod); changed {
		t.Error("a pod that says what it was made from is adopted")
	}
	delete(pod.Annotations, AnnotationTemplate)
	adopted, changed := Adopted(c, pod)
	if !changed || adopted.Annotations[AnnotationTemplate] != TemplateHash(c) || pod.Annotations[AnnotationTemplate] != "" {
		t.Errorf("adopted %t: %v", changed, adopted.Annotations)
	}
	c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "A"}}}
	if newer, _ := WithVersion(c, adopted); newer.Annotations[AnnotationTemplate] == TemplateHash(c) {
		t.Error("another image makes a pod what is declared")
	}
}
