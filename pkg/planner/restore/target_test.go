// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestServiceAccounts: the Job that reads the backup uses the service account of the
// restore, else that of the EtcdBackup. The bootstrap member uses the one of the Job.
func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	own := func(o *Observed) { o.Restore.Spec.ServiceAccountName = "reader" }
	writer := func(o *Observed) { o.Backup.Spec.ServiceAccountName = "writer" }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"nobody":            {nil, ""},
		"from a store":      {[]func(*Observed){own}, "reader"},
		"from an object":    {[]func(*Observed){fromBackup(nil), writer}, "writer"},
		"from one as other": {[]func(*Observed){fromBackup(nil), writer, own}, "reader"},
	} {
		look := Decide(observed(test.edits...))
		ask := Decide(observed(append(test.edits, held, checked(1, good()))...))
		if look.Check == nil || ask.Recovery == nil {
			t.Fatalf("%s: %s, %s", name, say(look), say(ask))
		}
		if look.Check.Place.ServiceAccountName != test.want || ask.Recovery.Source.Backup.ServiceAccountName != test.want {
			t.Errorf("%s: %q looks, %q fetches; want %q", name, look.Check.Place.ServiceAccountName, ask.Recovery.Source.Backup.ServiceAccountName, test.want)
		}
	}
}

// TestNewClusterIsMarked makes a cluster that never starts empty, and that this restore
// may take away again.
func TestNewClusterIsMarked(t *testing.T) {
	t.Parallel()
	o := observed(homeless, templated, func(o *Observed) {
		o.Restore.Annotations = map[string]string{"other": "z", scopeAnnotation: "clusterwide"}
	})
	c := o.newCluster(good())
	want := map[string]string{"x": "y", scopeAnnotation: "clusterwide", v1beta2.AnnotationRestore: "r", v1beta2.AnnotationRestoreUID: "uid-r"}
	if diff := cmp.Diff(want, c.Annotations); diff != "" || c.Labels["a"] != "b" || c.Name != "c" || c.Namespace != "ns" {
		t.Errorf("cluster %+v: %s", c, diff)
	}
	*c.Spec.Replicas = 9
	if len(o.Restore.Spec.ClusterTemplate.Annotations) != 1 || *o.Restore.Spec.ClusterTemplate.Spec.Replicas != 1 {
		t.Error("the template was changed")
	}
	o.Restore.Spec.ClusterTemplate.Annotations[scopeAnnotation] = "mine"
	if c := o.newCluster(good()); c.Annotations[scopeAnnotation] != "mine" {
		t.Errorf("the scope is %s, against the template", c.Annotations[scopeAnnotation])
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	volume := func(size string) *v1beta2.PodPolicy {
		return &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		}}
	}
	disk := func(p *v1beta2.PodPolicy, limit string) *v1beta2.PodPolicy {
		p.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(limit)}
		return p
	}
	for name, test := range map[string]struct {
		pod   *v1beta2.PodPolicy
		quota string
		want  string
	}{
		"default":            {nil, "", "3.6.16/2147483648"},
		"quota":              {nil, "8Gi", "3.6.16/8589934592"},
		"volume":             {volume("1Gi"), "", fmt.Sprintf("3.6.16/%d", 1<<30-128<<20)},
		"large volume":       {volume("100Gi"), "", "3.6.16/2147483648"},
		"very small volume":  {volume("64Mi"), "", fmt.Sprintf("3.6.16/%d", 32<<20)},
		"volume of no size":  {&v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}, "", "3.6.16/2147483648"},
		"volume under quota": {volume("4Gi"), "8Gi", fmt.Sprintf("3.6.16/%d", 4<<30-128<<20)},
		"limited disk":       {disk(&v1beta2.PodPolicy{}, "1Gi"), "", fmt.Sprintf("3.6.16/%d", (1<<30-48<<20-128<<20)/2)},
		"large disk":         {disk(&v1beta2.PodPolicy{}, "10Gi"), "", "3.6.16/2147483648"},
		"disk for nothing":   {disk(&v1beta2.PodPolicy{}, "100Mi"), "", "3.6.16/1"},
		"disk and volume":    {disk(volume("1Gi"), "256Mi"), "", fmt.Sprintf("3.6.16/%d", 208<<20)},
	} {
		c := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Version: "3.6.16", Pod: test.pod}}
		if test.quota != "" {
			c.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse(test.quota))}
		}
		if got := resources.RestoreTargetOf(c).String(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
