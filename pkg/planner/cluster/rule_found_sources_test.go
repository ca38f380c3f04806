// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// copied is for a PVC whose cluster still exists.
func copied(f *Found) { f.Source, f.ClusterNamespace = Source{Exists: "prod/c"}, "prod" }

// unchecked is for a PVC whose cluster may exist in a namespace that the controller may not read.
func unchecked(f *Found) { f.Source, f.ClusterNamespace = Source{Unchecked: true}, "prod" }

// beyond is for a PVC whose cluster was not looked for, because PVCs of it name too many namespaces.
func beyond(f *Found) { f.Source, f.ClusterNamespace = Source{Beyond: true}, "prod" }

// TestCopiedVolumesMessage: beside the cluster whose data the PVCs hold, the status names a backup, and not the request that
// would lead to the same wait. Of a cluster in another namespace it does not say whether that exists.
func TestCopiedVolumesMessage(t *testing.T) {
	t.Parallel()
	beside := func(f *Found) { f.Source, f.ClusterNamespace = Source{Exists: "n/d"}, "n" }
	unnamed := func(f *Found) { f.Source = Source{Unchecked: true} }
	unnamedCopy := func(f *Found) { f.Source = Source{Exists: "prod/secret"} }
	const (
		mayExist  = "a cluster in namespace prod, which may still exist"
		allow     = "If that cluster no longer exists, allow the controller to list EtcdClusters in namespace prod"
		notNoted  = "PVC x does not say the namespace"
		writeNote = "kubectl annotate pvc -n n x etcd.database.coreos.com/cluster-namespace=n"
	)
	said := map[string]string{}
	for name, test := range map[string]struct {
		found   func(*Found)
		message string
		remedy  string
	}{
		"its cluster exists in this namespace":    {beside, "EtcdCluster n/d, which still exists. Its members have the same IDs", "Restore a backup of n/d instead"},
		"its cluster exists in another namespace": {copied, mayExist, allow},
		"its cluster cannot be read":              {unchecked, mayExist, allow},
		"it says no namespace, and none reads":    {unnamed, notNoted, writeNote},
		"it says no namespace, and it exists":     {unnamedCopy, notNoted, writeNote},
	} {
		for _, requested := range []bool{false, true} {
			o := observed(t, 3, "", unresponsive, found(KindPVC, "x", "old", test.found))
			if requested {
				fromVolumes(&o)
			}
			w := Decide(o).Wait
			if w == nil || w.Reason != ReasonVolumesFound || !strings.Contains(w.Message, test.message) || !strings.Contains(w.Remedy, test.remedy) ||
				strings.Contains(w.Remedy, `"fromVolumes"`) || !strings.Contains(w.Remedy, "kubectl label pvc -n n x etcd_cluster- etcd_recovery-") {
				t.Fatalf("%s, requested %t: %+v", name, requested, w)
			}
			if before := said[test.message]; before != "" && before != w.Message+w.Remedy {
				t.Errorf("%s: the text differs from that of another cause: %q, %q", name, before, w.Message+w.Remedy)
			}
			said[test.message] = w.Message + w.Remedy
		}
	}
}

// TestSeveralSources: a user chooses one of several earlier clusters before the status names a source, with the request and
// without. No remedy of one cluster names the PVCs of another cluster.
func TestSeveralSources(t *testing.T) {
	t.Parallel()
	joinsToo := func(o *Observed) { joins(o); persist(o) }
	own, theirs := found(KindPVC, "own", "old"), found(KindPVC, "theirs", "copy", copied)
	const choose = "Choose one, and take the labels from the PVCs of the others"
	for name, test := range map[string]struct {
		edits  []func(*Observed)
		remedy string
		lacks  string
	}{
		"none is requested":                      {edits(theirs, own), choose + ", or from all of them to begin empty, such as with: kubectl label pvc -n n NAME", "may still exist"},
		"none is requested, to join an etcd":     {edits(joinsToo, theirs, own), choose + ", or from all of them to join the etcd in spec.bootstrap.existing, such as with", "begin empty"},
		"they are requested":                     {edits(fromVolumes, theirs, own), choose + ", such as with: kubectl label pvc -n n NAME", "may still exist"},
		"a PVC that says no cluster is released": {edits(theirs, found(KindPVC, "released", resources.UnknownClusterUID)), "take the labels from the PVCs: kubectl label pvc -n n theirs etcd_cluster-", "released"},
		"one names too many namespaces":          {edits(found(KindPVC, "x", "old", beyond)), "Correct the annotation etcd.database.coreos.com/cluster-namespace", "allow the controller"},
	} {
		w := Decide(observed(t, 3, "", append(edits(unresponsive), test.edits...)...)).Wait
		if w == nil || w.Reason != ReasonVolumesFound || !strings.Contains(w.Remedy, test.remedy) || strings.Contains(w.Message+w.Remedy, test.lacks) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// TestSoughtSource: the controller lists EtcdClusters only while the PVCs of one earlier cluster may be taken back.
func TestSoughtSource(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size    int
		members string
		edits   []func(*Observed)
		want    string
	}{
		"nothing was found":                         {3, "", edits(unresponsive), ""},
		"a new cluster beside a PVC":                {3, "", edits(unresponsive, found(KindPVC, "x", "old")), "old"},
		"a cluster that joins, beside a PVC":        {3, "", edits(unresponsive, joins, found(KindPVC, "x", "old")), "old"},
		"PVCs of two clusters":                      {3, "", edits(unresponsive, found(KindPVC, "x", "old"), found(KindPVC, "y", "older")), ""},
		"a PVC beside one that says no cluster":     {3, "", edits(unresponsive, found(KindPVC, "x", "old"), found(KindPVC, "y", resources.UnknownClusterUID)), "old"},
		"the PVC is requested":                      {3, "", edits(unresponsive, fromVolumes, found(KindPVC, "x", "old")), "old"},
		"a cluster that has begun, beside a PVC":    {1, "a:claim", edits(found(KindPVC, "x", "old")), ""},
		"one that requested PVCs, and has begun":    {1, "a:claim", edits(fromVolumes, found(KindPVC, "x", "old")), ""},
		"a service of an earlier cluster":           {3, "", edits(unresponsive, fromVolumes, found(KindService, "c", "old")), ""},
		"a PVC that comes late, beside unconfirmed": {3, "", edits(unresponsive, takenBack("x", "old"), found(KindPVC, "y", "old")), "old"},
	} {
		o := observed(t, test.size, test.members, test.edits...)
		if got := SoughtSource(&o); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
