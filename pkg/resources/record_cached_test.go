// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestCachedRecordIsBounded: whatever a user writes into a ConfigMap with the labels of a record, the cache keeps little.
func TestCachedRecordIsBounded(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid"}}
	megabyte := strings.Repeat("x", 1<<20)
	hostile := func(name, key string) *corev1.ConfigMap {
		cm := RecordConfigMap(c, Record{BootstrapMember: BootstrapMember(c)})
		cm.Name, cm.UID, cm.ResourceVersion = name, "u", "7"
		cm.Annotations = merged(cm.Annotations, map[string]string{"note": strings.Repeat("n", 200<<10)})
		cm.Data[key] = megabyte
		return cm
	}
	for name, test := range map[string]struct {
		cm        *corev1.ConfigMap
		owned     bool
		mostBytes int
	}{
		"another name":                     {hostile("c-other", "key"), false, 100},
		"a key of others":                  {hostile("c-record", "key"), true, 2000},
		"a declaration":                    {hostile("c-record", recordDeclaration), true, 2000},
		"a recovery":                       {hostile("c-record", recordRecovery), false, 100},
		"our annotation":                   {withAnnotation(hostile("c-record", "key"), v1beta2.SchemeGroupVersion.Group+"/x", megabyte), false, 100},
		"keys of others, without an owner": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c-record"}, Data: map[string]string{"key": megabyte}}, false, 100},
		"bytes, without an owner":          {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c-record"}, BinaryData: map[string][]byte{"key": []byte(megabyte)}}, false, 100},
		"nothing, without an owner":        {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c-record"}}, true, 100},
	} {
		cut := CachedRecord(test.cm)
		if size := cut.Size(); size > test.mostBytes || cut.Name != test.cm.Name || cut.UID != test.cm.UID || cut.ResourceVersion != test.cm.ResourceVersion {
			t.Errorf("%s: %d bytes of %s are kept", name, size, cut.Name)
		}
		if owned := OwnsRecord(c, cut); owned != test.owned {
			t.Errorf("%s: owned %t, want %t", name, owned, test.owned)
		}
		if again := CachedRecord(cut); test.owned && !reflect.DeepEqual(again, cut) {
			t.Errorf("%s: cut once more it differs", name)
		}
	}
}

func withAnnotation(cm *corev1.ConfigMap, key, value string) *corev1.ConfigMap {
	cm.Annotations[key] = value
	return cm
}

// TestCachedRecordSaysTheSame: the largest real record is in the cache what it is in the API.
func TestCachedRecordSaysTheSame(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: strings.Repeat("c", 52), UID: "uid"}}
	c.Annotations = map[string]string{"large": strings.Repeat("x", 250<<10)}
	c.Spec.DeletionProtection = ptr.To(true)
	r := Record{BootstrapMember: BootstrapMember(c), ClusterID: "1f", Recovery: &v1beta2.RecoveryStatus{ID: "r", Message: strings.Repeat("m", 8<<10)}}
	for i := range MostRecoveries {
		r.Recoveries = append(r.Recoveries, fmt.Sprintf("%036d", i))
	}
	for i := range mostRemoved {
		r.Removed = append(r.Removed, fmt.Sprintf("%s-%010d", c.Name, i))
	}
	for i := range v1beta2.MaxClusterRestores {
		r.Restores = append(r.Restores, v1beta2.ClusterRestore{
			Name: strings.Repeat("r", 253), UID: "uid", Request: strings.Repeat("q", 64), Time: &metav1.Time{Time: time.Unix(int64(1000-i), 0)},
		})
	}
	r.CorruptVoters, r.Unwritten = 3, "2a"
	r.Log, r.PutBack, r.Rotation = LogRecord{ClusterID: "1f", Minor: 6, Index: 9}, PutBackRecord{Round: 1, Since: time.Unix(7, 0).UTC()}, RotationRecord{Cause: "c", Rounds: 1}
	for i, fields := 0, reflect.ValueOf(r); i < fields.NumField(); i++ {
		if fields.Field(i).IsZero() {
			t.Errorf("the record has no %s", fields.Type().Field(i).Name)
		}
	}
	live := RecordConfigMap(c, r)
	MarkLasting(c, live)
	cut := CachedRecord(live)
	if cut.Size() > mostCached/2 {
		t.Errorf("%d bytes are kept of %d", cut.Size(), live.Size())
	}
	if !OwnsRecord(c, cut) || !RecordMarked(c, cut) || !IsMarkedLasting(c, cut) || !ParseRecord(cut).Equal(ParseRecord(live)) || !RecordsDeclaration(c, cut) {
		t.Error("the record in the cache says something else")
	}
	c.Annotations["large"] += "x"
	if RecordsDeclaration(c, cut) {
		t.Error("the cache does not show that the declaration has changed")
	}
}
