// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// appliedSpecs are specs with zero values, with quantities in the form of Kubernetes and with durations in others.
var appliedSpecs = map[string]struct{ kind, spec string }{
	"etcdclusters": {"EtcdCluster", `{"size":3,"version":"3.6.16","repository":"quay.io/coreos/etcd","paused":false,"podDisruptionBudget":"Enabled","deletionProtection":false,
		"pod":{"ClusterDomain":"","resources":{"requests":{"cpu":"1","memory":"512Mi"}}},
		"etcd":{"quotaBackendBytes":"2Gi","heartbeatInterval":"0.1s","electionTimeout":"1000ms"},
		"backup":{"storageType":"S3","s3":{"path":"b/p","awsSecret":"aws","forcePathStyle":false},"schedule":"@daily","retention":{"count":7,"age":"720h"},"compression":"Zstd","verify":"Hash"}}`},
	"etcdbackups": {"EtcdBackup", `{"etcdCluster":{"name":"a"},"storageType":"S3","s3":{"path":"b/p","awsSecret":"aws","forcePathStyle":false},"compression":"None","verify":"Hash",
		"backupPolicy":{"suspend":false,"maxBackups":0,"schedule":"@daily","maxAge":"90m"},"hold":false}`},
}

// TestReadsAsApplied: each way to read an object returns the spec that was applied, with nothing added, left out or written in
// another form.
func TestReadsAsApplied(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	client := server.client.EtcdV1beta2().RESTClient()
	for resource, applied := range appliedSpecs {
		body := `{"apiVersion":"` + v1beta2.SchemeGroupVersion.String() + `","kind":"` + applied.kind + `","metadata":{"name":"written"},"spec":` + applied.spec + `}`
		err := client.Patch(types.ApplyYAMLPatchType).Namespace("default").Resource(resource).Name("written").Param("fieldManager", "test").Body([]byte(body)).Do(t.Context()).Error()
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]func() ([]byte, error){
			"get": func() ([]byte, error) {
				return client.Get().Namespace("default").Resource(resource).Name("written").SetHeader("Accept", "application/json").Do(t.Context()).Raw()
			},
			"list": func() ([]byte, error) {
				data, err := client.Get().Namespace("default").Resource(resource).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
				var list struct{ Items []json.RawMessage }
				if err == nil {
					err = json.Unmarshal(data, &list)
				}
				if len(list.Items) != 1 {
					return nil, err
				}
				return list.Items[0], err
			},
			"get as protobuf": func() ([]byte, error) {
				object, err := client.Get().Namespace("default").Resource(resource).Name("written").Do(t.Context()).Get()
				if err != nil {
					return nil, err
				}
				return json.Marshal(object)
			},
		}
		read["list again, from the remembered encoding"] = read["list"]
		for name, get := range read {
			data, err := get()
			var got, want struct{ Spec any }
			if err == nil {
				err = json.Unmarshal(data, &got)
			}
			if err == nil {
				err = json.Unmarshal([]byte(body), &want)
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", resource, name, err)
			}
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("%s, %s (-applied +read):\n%s", resource, name, diff)
			}
		}
	}
}
