// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// everyChange changes each text, number and switch in a value, one at a time, and calls visit while it is changed. Of a map
// it replaces the entries.
func everyChange(path *field.Path, value reflect.Value, visit func(path string)) {
	if value.Type() == reflect.TypeFor[resource.Quantity]() {
		return
	}
	changed := func(set func()) {
		old := reflect.New(value.Type()).Elem()
		old.Set(value)
		set()
		visit(withoutIndex(path.String()))
		value.Set(old)
	}
	switch value.Kind() {
	case reflect.Pointer:
		everyChange(path, value.Elem(), visit)
	case reflect.Slice:
		everyChange(path.Index(0), value.Index(0), visit)
	case reflect.Map:
		changed(func() {
			value.Set(reflect.MakeMap(value.Type()))
			value.SetMapIndex(reflect.ValueOf("other").Convert(value.Type().Key()), reflect.Zero(value.Type().Elem()))
		})
	case reflect.Struct:
		for i := range value.NumField() {
			if structField := value.Type().Field(i); structField.IsExported() {
				at := path
				if name, inline := jsonName(structField); !inline {
					at = path.Child(name)
				}
				everyChange(at, value.Field(i), visit)
			}
		}
	case reflect.String:
		changed(func() { value.SetString("other " + value.String()) })
	case reflect.Bool:
		changed(func() { value.SetBool(!value.Bool()) })
	case reflect.Int, reflect.Int32, reflect.Int64:
		changed(func() { value.SetInt(value.Int() + 1) })
	default: // what a quantity is made of: its text changes with it
	}
}

// The fields of the API, as far as all that is in them counts, or nothing. A field counts if a change of it may send the content
// of a Secret elsewhere, or have another program read it.
var (
	ofJobs = map[bool][]string{
		true:  {"labels", "annotations", "imagePullSecrets", "env"},
		false: {"nodeSelector", "tolerations", "affinity", "priorityClassName", "resources"},
	}
	// verify counts where it is Restore, beside a ServiceAccount: see TestNeeds.
	ofBackups = map[bool][]string{
		true: {
			"etcdEndpoints", "storageType", "s3", "abs", "gcs", "oss", "persistentVolumeClaim", "clientTLSSecret", "etcdCluster", "encryption",
			"serviceAccountName",
		},
		false: {"backupPolicy", "compression", "verify", "hold", "heldSnapshots", "ttl"},
	}
	ofRestores = map[bool][]string{
		true: {
			"backupStorageType", "s3", "abs", "gcs", "oss", "persistentVolumeClaim", "etcdCluster", "backup", "clusterTemplate", "decryption",
			"serviceAccountName",
		},
		false: {"revisionBump"},
	}
	ofClusters = map[bool][]string{
		true: {
			"repository", "pod.labels", "pod.annotations", "metadata.labels", "pod.etcdEnv", "pod.imagePullSecrets", "TLS.static", "bootstrap.existing.clientEndpoints", "bootstrap.existing.tlsSecret",
			"backup.storageType", "backup.s3", "backup.abs", "backup.gcs", "backup.oss", "backup.persistentVolumeClaim", "backup.encryption",
			"backup.serviceAccountName",
		},
		false: {
			"size", "version", "paused", "etcd", "services", "podDisruptionBudget", "recovery", "deletionProtection", "imageDigest", "clients",
			"TLS.certManager", "bootstrap.existing.oldMembers",
			"pod.nodeSelector", "pod.affinity", "pod.antiAffinity", "pod.resources", "pod.tolerations", "pod.persistentVolumeClaimSpec",
			"pod.busyboxImage", "pod.securityContext", "pod.DNSTimeoutInSecond", "pod.ClusterDomain", "pod.topologySpreadConstraints",
			"pod.priorityClassName", "pod.imagePullPolicy", "pod.terminationGracePeriodSeconds", "pod.containerSecurityContext",
			"pod.persistentVolumeClaimRetentionPolicy",
			"backup.schedule", "backup.timeZone", "backup.retention", "backup.compression", "backup.verify", "backup.ttl",
		},
	}
)

// TestFieldsThatCount changes every field of a stored object that names Secrets everywhere. A user without a right to these
// may change the fields that do not count. A field that the API gets later belongs in one of the lists.
func TestFieldsThatCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		obj    runtime.Object
		jobs   string
		fields map[bool][]string
	}{
		{&v1beta2.EtcdBackup{}, "job", ofBackups},
		{&v1beta2.EtcdRestore{}, "job", ofRestores},
		{&v1beta2.EtcdCluster{}, "backup.job", ofClusters},
	} {
		counts := map[string]bool{}
		for _, want := range []bool{true, false} {
			for _, name := range test.fields[want] {
				counts["spec."+name] = want
			}
			for _, name := range ofJobs[want] {
				counts["spec."+test.jobs+"."+name] = want
			}
		}
		spec, path := reflect.ValueOf(test.obj).Elem().FieldByName("Spec"), field.NewPath("spec")
		fill(path, spec)
		old, met := test.obj.DeepCopyObject(), map[string]bool{}
		everyChange(path, spec, func(changed string) {
			listed := slices.Collect(func(yield func(string) bool) {
				for name := range counts {
					if (changed == name || strings.HasPrefix(changed, name+".") || strings.HasPrefix(changed, name+"[")) && !yield(name) {
						return
					}
				}
			})
			if len(listed) != 1 {
				t.Errorf("%T: %s is in the lists %d times: add it to those that count, or to those that do not", old, changed, len(listed))
				return
			}
			met[listed[0]] = true
			if got := len(NeedsOf(test.obj, old)) > 0; got != counts[listed[0]] {
				t.Errorf("%T: a change of %s needs a right: %v, want %v", old, changed, got, !got)
			}
		})
		for name := range counts {
			if !met[name] {
				t.Errorf("%T has no field %s", old, name)
			}
		}
	}
}
