// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// decided are the fields that change what the controller does and not what an object looks like, and
// the package that reads them.
var decided = map[string]string{
	"spec.size":                  "planner/cluster",
	"spec.paused":                "planner/cluster",
	"spec.podDisruptionBudget":   "planner/cluster",
	"spec.deletionProtection":    "resources",
	"spec.recovery":              "planner/cluster",
	"spec.backup":                "",
	"spec.clients":               "planner/cluster",
	"spec.bootstrap":             "",
	"spec.bootstrap.fromVolumes": "apis/etcd/v1beta2", // others call TakesVolumesBack
	"spec.TLS.certManager":       "resources",
	"spec.pod.persistentVolumeClaimRetentionPolicy.whenDeleted": "resources",
	"spec.pod.persistentVolumeClaimRetentionPolicy.whenScaled":  "resources",
	"spec.recovery.memberLossTimeoutSeconds":                    "apis/etcd/v1beta2",
}

// leaf is one field of a spec that the test sets.
type leaf struct {
	path, name string
	set        func(*v1beta2.ClusterSpec)
}

// leaves lists the fields of a type. It goes into types of the group and into the PVC; other types are
// filled whole.
func leaves(of reflect.Type, path string, reach func(*v1beta2.ClusterSpec) reflect.Value) []leaf {
	var list []leaf
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := path + "." + name
		if name == "" { // inlined
			at = path
		}
		into := func(spec *v1beta2.ClusterSpec) reflect.Value {
			v := reach(spec).Field(i)
			if v.Kind() == reflect.Pointer && v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			return reflect.Indirect(v)
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		own := strings.HasSuffix(inner.PkgPath(), "/v1beta2") || inner == reflect.TypeFor[corev1.PersistentVolumeClaimSpec]() || inner == reflect.TypeFor[corev1.VolumeResourceRequirements]()
		if inner.Kind() == reflect.Struct && own && inner.NumField() > 0 {
			list = append(list, leaves(inner, at, into)...)
			continue
		}
		list = append(list, leaf{path: at, name: f.Name, set: func(spec *v1beta2.ClusterSpec) { fill(into(spec), 4) }})
	}
	return list
}

// fill sets a value that is not the zero value.
func fill(v reflect.Value, depth int) {
	switch special := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*special = resource.MustParse("3Gi")
		return
	case *v1beta2.Duration:
		special.Duration = 7e9
		return
	case *corev1.ResourceList:
		*special = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth)
		fill(value, depth)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if depth > 0 && v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth-1)
			}
		}
	default: // no field of a spec is of another kind
	}
}

// plain is a cluster whose members have volumes.
func plain() *v1beta2.EtcdCluster {
	c := valid("a")
	c.Namespace, c.UID, c.ResourceVersion = ns, "uid", "1"
	c.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	return c
}

// rendered is everything that the controller makes from the spec of a cluster, but the copy of the spec.
func rendered(t *testing.T, c *v1beta2.EtcdCluster) string {
	t.Helper()
	text, err := json.Marshal([]any{
		resources.Pod(c, resources.MemberPod{Name: "a-0", Bootstrap: true, Token: "uid"}), resources.Pod(c, resources.MemberPod{Name: "a-1"}),
		resources.PVC(c, "a-0"), resources.PeerService(c), resources.ClientService(c), resources.PodDisruptionBudget(c, 3),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names is true for a text that begins with the path of a field, or with that of a part of it.
func names(texts []string, path string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.HasPrefix(text, path+":") || strings.HasPrefix(text, path+"[") || strings.HasPrefix(text, path+".")
	})
}

func fieldsOf(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Field+":")
	}
	return list
}

// isRead is true if a file of a package below pkg, which is not generated, reads a field.
func isRead(t *testing.T, dir, name string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join("..", "..", "..", dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || found || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "generated") {
			return err
		}
		if dir == "" && (strings.Contains(path, "/pkg/apis/") || strings.Contains(path, "../apis/")) {
			return nil
		}
		text, err := os.ReadFile(path)
		found = strings.Contains(string(text), "."+name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEveryFieldHasAnEffect: each field of a spec changes an object or a decision, or the response to the
// request says that it does not.
func TestEveryFieldHasAnEffect(t *testing.T) {
	t.Parallel()
	before := rendered(t, plain())
	all := leaves(reflect.TypeFor[v1beta2.ClusterSpec](), "spec", func(spec *v1beta2.ClusterSpec) reflect.Value { return reflect.ValueOf(spec).Elem() })
	used := map[string]bool{}
	for _, l := range all {
		c := plain()
		l.set(&c.Spec)
		where, prefix := "", ""
		for p := range decided {
			if (l.path == p || strings.HasPrefix(l.path, p+".")) && len(p) > len(prefix) {
				where, prefix = decided[p], p
			}
		}
		switch {
		case names(validation.WarningsForEtcdCluster(c), l.path), rendered(t, c) != before:
		case names(fieldsOf(validation.ValidateEtcdCluster(c)), l.path) && prefix == "":
		case prefix == "":
			t.Errorf("%s changes no object, and neither a warning nor an error names it", l.path)
		case !isRead(t, where, l.name):
			t.Errorf("%s: nothing in pkg/%s reads it", l.path, where)
		}
		used[prefix] = true
	}
	for p := range decided {
		if !used[p] {
			t.Errorf("%s is no field", p)
		}
	}
}

// TestEveryChangeOfAPVCHasAnEffect: a change of the PVC spec of a living cluster is rejected, or a warning
// names it, or the controller sees that the PVC differs.
func TestEveryChangeOfAPVCHasAnEffect(t *testing.T) {
	t.Parallel()
	const path = "spec.pod.persistentVolumeClaimSpec"
	living := resources.PVC(plain(), "a-0")
	living.Status.Phase, living.Status.Capacity = corev1.ClaimBound, living.Spec.Resources.Requests
	for _, l := range leaves(reflect.TypeFor[corev1.PersistentVolumeClaimSpec](), path, func(spec *v1beta2.ClusterSpec) reflect.Value {
		return reflect.ValueOf(spec.Pod.PersistentVolumeClaimSpec).Elem()
	}) {
		c := plain()
		l.set(&c.Spec)
		growth, _ := resources.PVCGrowth(c, living)
		if !names(fieldsOf(validation.ValidateEtcdClusterUpdate(c, plain())), l.path) && !names(validation.WarningsForEtcdCluster(c), l.path) &&
			growth == resources.GrownEnough && !resources.HasOtherAttributes(c, living) {
			t.Errorf("a change of %s is accepted, and nothing happens", l.path)
		}
	}
}
