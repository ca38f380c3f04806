// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

const compatDir = "../../../../artifacts/examples/compat"

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// decodeStrict decodes as the server does for kubectl, which asks for strict
// validation: an unknown or repeated field is an error.
func decodeStrict(t *testing.T, scheme *runtime.Scheme, data []byte) runtime.Object {
	t.Helper()
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme.Default(object)
	return object
}

func storeAndLoad(t *testing.T, scheme *runtime.Scheme, object runtime.Object) runtime.Object {
	t.Helper()
	store := protobuf.NewSerializer(scheme, scheme)
	var stored bytes.Buffer
	if err := store.Encode(object, &stored); err != nil {
		t.Fatal(err)
	}
	loaded, _, err := store.Decode(stored.Bytes(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(object, loaded) {
		t.Errorf("changed in the store:\n%s", cmp.Diff(object, loaded))
	}
	return loaded
}

func asFields(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// contains fails for every field of given that got lacks or has changed.
func contains(t *testing.T, at string, given, got any) {
	t.Helper()
	fields, isObject := given.(map[string]any)
	if !isObject {
		if diff := cmp.Diff(given, got); diff != "" {
			t.Errorf("%s changed (-given +got):\n%s", at, diff)
		}
		return
	}
	kept, _ := got.(map[string]any)
	for name, value := range fields {
		contains(t, at+"."+name, value, kept[name])
	}
}

// What defaults and fields that are never left out add to the spec of a manifest.
var added = map[string]map[string]any{
	"cluster-clusterwide":     {"repository": "quay.io/coreos/etcd", "podDisruptionBudget": "Enabled", "paused": false},
	"cluster-example":         {"repository": "quay.io/coreos/etcd", "podDisruptionBudget": "Enabled", "paused": false},
	"cluster-unquoted-3.1.10": {"repository": "quay.io/coreos/etcd", "podDisruptionBudget": "Enabled", "paused": false},
	"backup-abs":              {"compression": "None", "verify": "Hash"},
	"backup-gcs":              {"compression": "None", "verify": "Hash"},
	"backup-oss-periodic": {"compression": "None", "verify": "Hash",
		"backupPolicy": map[string]any{"backupIntervalInSecond": float64(125), "maxBackups": float64(4), "suspend": false}},
	"backup-s3":   {"compression": "None", "verify": "Hash", "s3": map[string]any{"path": "mybucket/etcd.backup", "awsSecret": "aws", "forcePathStyle": false}},
	"restore-oss": {},
	"restore-s3":  {"s3": map[string]any{"path": "mybucket/etcd.backup", "awsSecret": "aws", "forcePathStyle": false, "endpoint": ""}},
}

func TestManifestsSurviveUnchanged(t *testing.T) {
	scheme := newScheme(t)
	manifests, err := filepath.Glob(filepath.Join(compatDir, "*.yaml"))
	if err != nil || len(manifests) != 9 {
		t.Fatalf("found %d manifests, %v", len(manifests), err)
	}
	for _, path := range manifests {
		name := filepath.Base(path[:len(path)-len(".yaml")])
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var given map[string]any
			if err := yaml.Unmarshal(data, &given); err != nil {
				t.Fatal(err)
			}
			loaded := storeAndLoad(t, scheme, decodeStrict(t, scheme, data))
			got := asFields(t, loaded)
			contains(t, name, given, got)

			want := given["spec"].(map[string]any)
			for field, value := range added[name] {
				want[field] = value
			}
			if diff := cmp.Diff(want, got["spec"]); diff != "" {
				t.Errorf("spec means something else (-want +got):\n%s", diff)
			}
			if errs := validate(loaded); len(errs) > 0 {
				t.Errorf("refused: %v", errs.ToAggregate())
			}
		})
	}
}

// validate treats the object as one that was sent to a namespace.
func validate(object runtime.Object) field.ErrorList {
	switch object := object.(type) {
	case *v1beta2.EtcdCluster:
		object.Namespace = "default"
		return validation.ValidateEtcdCluster(object)
	case *v1beta2.EtcdBackup:
		object.Namespace = "default"
		return validation.ValidateEtcdBackup(object)
	case *v1beta2.EtcdRestore:
		object.Namespace = "default"
		return validation.ValidateEtcdRestore(object)
	}
	return field.ErrorList{field.InternalError(nil, os.ErrInvalid)}
}

// kubectl turns the argument of patch into JSON as if it were YAML, so a version that
// is not quoted arrives as a string.
func TestUpgradePatch(t *testing.T) {
	argument, err := os.ReadFile(filepath.Join(compatDir, "upgrade-patch.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := yaml.YAMLToJSON(argument)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(sent)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(compatDir, "cluster-example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scheme := newScheme(t)
	before := decodeStrict(t, scheme, manifest).(*v1beta2.EtcdCluster)
	document, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(document)
	if err != nil {
		t.Fatal(err)
	}
	after := decodeStrict(t, scheme, patched).(*v1beta2.EtcdCluster)
	if after.Spec.Version != "3.3.12" {
		t.Errorf("version %q", after.Spec.Version)
	}
	before.ResourceVersion, after.ResourceVersion = "1", "1"
	before.Namespace, after.Namespace = "default", "default"
	if errs := validation.ValidateEtcdClusterUpdate(after, before); len(errs) > 0 {
		t.Errorf("refused: %v", errs.ToAggregate())
	}
}

// The JSON names that do not follow the conventions are those that users write.
func TestOldFieldNames(t *testing.T) {
	const spec = `{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster", "metadata": {"name": "a"}, "spec": {"size": 3, "version": "v3.3.25", "repository": "r/etcd", "paused": true,
		"TLS": {"static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}},
		"pod": {"labels": {"a": "b"}, "nodeSelector": {"c": "d"}, "antiAffinity": true, "resources": {"limits": {"cpu": "1"}}, "tolerations": [{"key": "e", "operator": "Exists"}],
			"etcdEnv": [{"name": "ETCD_AUTO_COMPACTION_RETENTION", "value": "1"}], "annotations": {"f": "g"}, "busyboxImage": "busybox:1.28.0-glibc", "securityContext": {"runAsUser": 9000},
			"persistentVolumeClaimSpec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}, "DNSTimeoutInSecond": 30, "ClusterDomain": ".cluster.local"}},
		"status": {"phase": "Running", "reason": "x", "controlPaused": true, "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "2018-01-01T00:00:00Z", "lastTransitionTime": "2018-01-01T00:00:00Z", "reason": "Cluster available"}],
			"size": 3, "serviceName": "a-client", "clientPort": 2379, "members": {"ready": ["a-1"], "unready": ["a-2"]}, "currentVersion": "3.3.25", "targetVersion": ""}}`
	const backup = `{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdBackup", "metadata": {"name": "a"},
		"spec": {"etcdEndpoints": ["https://a-client:2379"], "storageType": "S3", "clientTLSSecret": "c", "backupPolicy": {"timeoutInSecond": 60, "backupIntervalInSecond": 5, "maxBackups": 2},
			"s3": {"path": "b/k", "awsSecret": "aws", "endpoint": "http://minio:9000", "forcePathStyle": true}},
		"status": {"succeeded": true, "Reason": "x", "etcdVersion": "3.3.25", "etcdRevision": 7, "lastSuccessDate": "2018-01-01T00:00:00Z"}}`
	const restore = `{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdRestore", "metadata": {"name": "a"},
		"spec": {"backupStorageType": "S3", "s3": {"path": "b/k", "awsSecret": "aws", "endpoint": "", "forcePathStyle": false}, "etcdCluster": {"name": "a"}}, "status": {"succeeded": true, "reason": "x"}}`
	scheme := newScheme(t)
	for _, text := range []string{spec, backup, restore} {
		var given map[string]any
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
		loaded := storeAndLoad(t, scheme, decodeStrict(t, scheme, []byte(text)))
		contains(t, given["kind"].(string), given, asFields(t, loaded))
		if errs := validate(loaded); len(errs) > 0 {
			t.Errorf("refused: %v", errs.ToAggregate())
		}
	}
}
