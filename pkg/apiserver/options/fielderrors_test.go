// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// wrongFields are objects of each kind with several wrong fields, and what the response must contain.
var wrongFields = []struct {
	resource, manifest string
	want               []string
}{
	{"etcdclusters", `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"wrong"},"spec":{
		"sise":3,"version":3.6,"tls":{},"paused":"true","etcd":{"quotaBackendBytes":"1GB","heartbeatInterval":"2d"},"pod":{"etcdEnv":[{"name":"A","valeu":"b"}]}}}`,
		[]string{
			`unknown field "spec.sise" (did you mean "spec.size"?)`, "spec.version: must be a string, not a number; put it in quotes",
			`unknown field "spec.tls" (did you mean "spec.TLS"?)`, "spec.paused: must be true or false, not a string; remove the quotes",
			`spec.etcd.quotaBackendBytes: "1GB" is not a quantity`, `spec.etcd.heartbeatInterval: "2d" is not a duration in h, m and s, for example 720h`,
			`unknown field "spec.pod.etcdEnv[0].valeu" (did you mean "spec.pod.etcdEnv[0].value"?)`,
		}},
	{"etcdbackups", `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdBackup","metadata":{"name":"wrong"},"spec":{
		"ttl":"30d","hold":"yes","maxAge":"1h","backupPolicy":{"maxAge":"2w","maxBackups":"3"}}}`,
		[]string{
			`spec.ttl: "30d" is not a duration`, "spec.hold: must be true or false, not a string", `unknown field "spec.maxAge"`,
			"spec.backupPolicy.maxBackups: must be an integer, not a string; remove the quotes", `spec.backupPolicy.maxAge: "2w" is not a duration`,
		}},
	{"etcdrestores", `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdRestore","metadata":{"name":"wrong","lables":{"a":"b"}},"spec":{
		"clusterTemplate":{"spec":{"size":"three"}},"etcdCluster":"a"}}`,
		[]string{
			`unknown field "metadata.lables" (did you mean "metadata.labels"?)`, "spec.clusterTemplate.spec.size: must be an integer, not a string",
			"spec.etcdCluster: must be an object, not a string",
		}},
}

// TestWrongFieldsAreNamed: each way to send an object names all of its wrong fields in one response.
func TestWrongFieldsAreNamed(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	client := server.client.EtcdV1beta2().RESTClient()
	for _, test := range wrongFields {
		asYAML, err := yaml.JSONToYAML([]byte(test.manifest))
		if err != nil {
			t.Fatal(err)
		}
		for name, send := range map[string]func() error{
			"create JSON": func() error {
				return client.Post().Namespace("default").Resource(test.resource).Param("fieldValidation", "Strict").
					SetHeader("Content-Type", "application/json").Body([]byte(test.manifest)).Do(t.Context()).Error()
			},
			"create YAML, without a wish for unknown fields": func() error {
				return client.Post().Namespace("default").Resource(test.resource).
					SetHeader("Content-Type", "application/yaml").Body(asYAML).Do(t.Context()).Error()
			},
			"apply": func() error {
				return client.Patch(types.ApplyYAMLPatchType).Namespace("default").Resource(test.resource).Name("wrong").Param("fieldManager", "test").
					Param("force", "true").Body(asYAML).Do(t.Context()).Error()
			},
		} {
			err := send()
			if !apierrors.IsBadRequest(err) {
				t.Errorf("%s, %s: got %v, want a bad request", test.resource, name, err)
				continue
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s: got\n%v\nwant %s", test.resource, name, err, want)
				}
			}
		}
	}
}

// TestOtherErrorsStay: a response that is not about decoding does not change, and a change that is one
// field of an object is compared with the whole type.
func TestOtherErrorsStay(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	clusters := server.client.EtcdV1beta2().EtcdClusters("default")
	if _, err := clusters.Create(t.Context(), newCluster("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(kind types.PatchType, body string, options metav1.PatchOptions) error {
		_, err := clusters.Patch(t.Context(), "a", kind, []byte(body), options)
		return err
	}
	strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	for _, test := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"a wrong value in a merge patch", patch(types.MergePatchType, `{"spec":{"backup":null,"etcd":{"electionTimeout":"1 minute"}}}`, metav1.PatchOptions{}),
			http.StatusBadRequest, `spec.etcd.electionTimeout: "1 minute" is not a duration`},
		{"an unknown field in a strict strategic merge patch", patch(types.StrategicMergePatchType, `{"spec":{"$retainKeys":["size"],"vresion":"3.6.16"}}`, strict),
			http.StatusBadRequest, `unknown field "spec.vresion" (did you mean "spec.version"?)`},
		{"an invalid value beside an unknown field", patch(types.MergePatchType, `{"spec":{"size":-1,"vresion":"3.6.16"}}`, metav1.PatchOptions{}),
			http.StatusUnprocessableEntity, "spec.size: Invalid value"},
		{"a JSON patch", patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/size","value":-1}]`, metav1.PatchOptions{}),
			http.StatusUnprocessableEntity, "spec.size: Invalid value"},
	} {
		status, ok := test.err.(apierrors.APIStatus)
		if !ok || int(status.Status().Code) != test.code || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got %v, want %d %s", test.name, test.err, test.code, test.want)
		}
	}
	if err := patch(types.MergePatchType, `{"spec":{"size":5,"vresion":"3.6.16"}}`, metav1.PatchOptions{}); err != nil {
		t.Errorf("an unknown field is a warning: got %v", err)
	}
}
