// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// limitedLists is a live API that lists the EtcdClusters of some namespaces only.
type limitedLists struct {
	Objects
	// readable are these namespaces; nil for all.
	readable map[string]bool
	clusters []v1beta2.EtcdCluster
	broken   error
}

func (l limitedLists) ListClusters(_ context.Context, namespace string) ([]v1beta2.EtcdCluster, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if l.readable != nil && !l.readable[namespace] {
		return nil, apierrors.NewForbidden(v1beta2.Resource("etcdclusters"), "", nil)
	}
	var listed []v1beta2.EtcdCluster
	for _, c := range l.clusters {
		if namespace == "" || c.Namespace == namespace {
			listed = append(listed, c)
		}
	}
	return listed, nil
}

func clusterAt(namespace, name, uid string) v1beta2.EtcdCluster {
	return v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
}

// TestFindSource: the cluster whose data a PVC holds is found by its UID wherever it exists, and by its name in the other namespace
// that the PVC names. What cannot be read is not taken for absent.
func TestFindSource(t *testing.T) {
	t.Parallel()
	own, limited := clusterAt("drill", "c", "uid"), map[string]bool{"drill": true}
	exists := func(where string) planner.Source { return planner.Source{Exists: where} }
	for name, test := range map[string]struct {
		uid, namespace string
		clusters       []v1beta2.EtcdCluster
		readable       map[string]bool
		want           planner.Source
	}{
		"it exists in the noted namespace":                     {"old", "prod", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "old")}, nil, exists("prod/c")},
		"it was created again in the noted namespace":          {"old", "prod", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "next")}, nil, exists("prod/c")},
		"another cluster of the noted namespace":               {"old", "prod", []v1beta2.EtcdCluster{own, clusterAt("prod", "d", "next")}, nil, planner.Source{}},
		"it no longer exists in the noted namespace":           {"old", "prod", []v1beta2.EtcdCluster{own, clusterAt("test", "c", "next")}, nil, planner.Source{}},
		"the noted namespace cannot be read":                   {"old", "prod", []v1beta2.EtcdCluster{own}, limited, planner.Source{Unchecked: true}},
		"the noted namespace is the own one":                   {"old", "drill", []v1beta2.EtcdCluster{own, clusterAt("drill", "d", "next")}, limited, planner.Source{}},
		"it exists under another name in the own namespace":    {"old", "drill", []v1beta2.EtcdCluster{own, clusterAt("drill", "d", "old")}, limited, exists("drill/d")},
		"no namespace is noted, and it exists":                 {"old", "", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "old")}, nil, exists("prod/c")},
		"no namespace is noted, and it does not exist":         {"old", "", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "next")}, nil, planner.Source{}},
		"no namespace is noted, and not all can be read":       {"old", "", []v1beta2.EtcdCluster{own}, limited, planner.Source{Unchecked: true}},
		"a PVC without any note, of a user":                    {resources.UnknownClusterUID, "", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "old")}, limited, planner.Source{}},
		"a PVC with the note of another namespace, and no UID": {resources.UnknownClusterUID, "prod", []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "old")}, nil, exists("prod/c")},
	} {
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: limitedLists{readable: test.readable, clusters: test.clusters}}}, seen: &seen{Observed: planner.Observed{Cluster: &own}}}
		if source, err := findSource(t.Context(), r, test.uid, test.namespace); err != nil || source != test.want {
			t.Errorf("%s: %+v, error %v, want %+v", name, source, err, test.want)
		}
	}
}

// TestObserveSources: each PVC that was found tells of its cluster, and an API that does not respond proves nothing.
func TestObserveSources(t *testing.T) {
	t.Parallel()
	own := clusterAt("drill", "c", "uid")
	own.Spec.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
	lists := limitedLists{clusters: []v1beta2.EtcdCluster{own, clusterAt("prod", "c", "old")}}
	s := &seen{Observed: planner.Observed{Cluster: &own}}
	note := func(name, uid, namespace string) {
		s.observeMark(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: resources.Labels("c"),
			Annotations: map[string]string{resources.AnnotationClusterUID: uid, resources.AnnotationClusterNamespace: namespace},
		}})
	}
	note("c-x", "old", "")
	note("c-y", resources.UnknownClusterUID, "prod") // released: it is not taken back
	r := &run{Reconciler: &Reconciler{Config: Config{Objects: lists}}, seen: s}
	if err := observeSources(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Found {
		if want := f.Name == "c-x"; (f.Source.Exists == "prod/c") != want {
			t.Errorf("PVC %s: %+v", f.Name, f.Source)
		}
	}
	for i := range 2 * planner.MostSources {
		note(fmt.Sprint("c-", i), "old", fmt.Sprint("forged-", i))
	}
	if err := observeSources(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if last := s.Found[len(s.Found)-1]; last.Source != (planner.Source{Beyond: true}) {
		t.Errorf("each source that a PVC names is looked up: %+v", last.Source)
	}
	lists.broken = errors.New("the API does not respond")
	r.Objects = lists
	if err := observeSources(t.Context(), r); !errors.Is(err, lists.broken) {
		t.Errorf("the API does not respond: %v", err)
	}
	note("c-other", "older", "drill")
	if err := observeSources(t.Context(), r); err != nil {
		t.Errorf("EtcdClusters are listed before a user has chosen one of two earlier clusters: %v", err)
	}
}

// TestTakeBackBesideSource: a PVC whose cluster came back since the observation is not taken back.
func TestTakeBackBesideSource(t *testing.T) {
	t.Parallel()
	action := planner.TakeBack{Object: planner.Object{Kind: planner.KindPVC, Name: "c-theirs", UID: "uid-c-theirs"}, ClusterUID: "other"}
	for name, test := range map[string]struct {
		clusters []v1beta2.EtcdCluster
		note     string
		readable map[string]bool
		want     error
	}{
		"its cluster exists":           {[]v1beta2.EtcdCluster{clusterAt("prod", "c", "other")}, "prod", nil, reconcile.ErrStale},
		"its cluster no longer exists": {nil, "prod", nil, nil},
		"its cluster cannot be read":   {nil, "prod", map[string]bool{"n": true}, reconcile.ErrStale},
		"it is of this namespace":      {[]v1beta2.EtcdCluster{clusterAt("prod", "c", "next")}, "n", map[string]bool{"n": true}, nil},
	} {
		l, r := returned(t, true)
		pvc, err := l.GetPVC(t.Context(), "n", "c-theirs")
		if err != nil {
			t.Fatal(err)
		}
		pvc.Annotations[resources.AnnotationClusterNamespace] = test.note
		if _, err := l.UpdatePVC(t.Context(), pvc); err != nil {
			t.Fatal(err)
		}
		r.Objects = limitedLists{Objects: l, clusters: test.clusters, readable: test.readable}
		if err := takeBack(t.Context(), r, action); !errors.Is(err, test.want) {
			t.Errorf("%s: the error is %v, want %v", name, err, test.want)
		}
		if pvc, err = l.GetPVC(t.Context(), "n", "c-theirs"); err != nil || resources.Owns(l.c, pvc) != (test.want == nil) || resources.FormerClusterNamespace(pvc) != test.note {
			t.Errorf("%s: the annotations are %v, error %v", name, pvc.Annotations, err)
		}
	}
}
