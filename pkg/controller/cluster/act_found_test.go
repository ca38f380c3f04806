// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	fakeetcd "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// returned is a cluster that requests what an earlier cluster of its name, with UID "other", has left.
func returned(t *testing.T, requested bool) (*deletedCluster, *run) {
	t.Helper()
	l, r := livingCluster(t)
	if requested {
		live := l.c.DeepCopy()
		live.Spec.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
		l.Etcd = fakeetcd.NewClientset(live)
	}
	return l, r
}

// TestTakeBack: exactly the PVC that was found becomes one of the cluster, on request, with its data and
// without an owner that would take it along.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		requested bool
		since     func(*corev1.PersistentVolumeClaim)
		want      error
	}{
		{"it is as it was found", true, func(*corev1.PersistentVolumeClaim) {}, nil},
		{"a retention policy has kept it", true, func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationRetained] = resources.RetainedByPolicy
		}, nil},
		{"the request was taken back", false, func(*corev1.PersistentVolumeClaim) {}, reconcile.ErrStale},
		{"the request was removed after another PVC was taken back", false, func(p *corev1.PersistentVolumeClaim) { p.Labels["first"] = "c-a" }, nil},
		{"it was replaced", true, func(p *corev1.PersistentVolumeClaim) { p.UID = "next" }, reconcile.ErrStale},
		{"it is of a third cluster", true, func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationClusterUID] = "third"
		}, reconcile.ErrStale},
		{"it has an owner", true, func(p *corev1.PersistentVolumeClaim) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "EtcdCluster", Name: "c", UID: "other", Controller: ptr.To(true)}}
		}, reconcile.ErrStale},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, r := returned(t, test.requested)
			live, err := l.GetPVC(t.Context(), "n", "c-theirs")
			if err != nil {
				t.Fatal(err)
			}
			if test.since(live); live.Labels["first"] != "" {
				l.unconfirmed("other")
			}
			if _, err := l.UpdatePVC(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			action := planner.TakeBack{Object: planner.Object{Kind: planner.KindPVC, Name: "c-theirs", UID: "uid-c-theirs"}, ClusterUID: "other"}
			if err := takeBack(t.Context(), r, action); !errors.Is(err, test.want) {
				t.Fatalf("the error is %v, want %v", err, test.want)
			}
			pvc, err := l.GetPVC(t.Context(), "n", "c-theirs")
			if err != nil {
				t.Fatal(err)
			}
			if resources.Owns(l.c, pvc) != (test.want == nil) {
				t.Fatalf("it belongs to cluster %q", pvc.Annotations[resources.AnnotationClusterUID])
			}
			if test.want == nil && (resources.TakenBackFrom(pvc) != "other" || pvc.Annotations[resources.AnnotationRetained] != "" || len(pvc.OwnerReferences) > 0) {
				t.Errorf("its annotations are %v, its owners %v", pvc.Annotations, pvc.OwnerReferences)
			}
		})
	}
}

// TestJoinBesideVolumes: a cluster that is to join a running etcd does not begin beside a PVC of an earlier cluster of its name
// that came since the observation.
func TestJoinBesideVolumes(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"a PVC came": true, "none is left": false} {
		l, r := livingCluster(t)
		r.seen.Cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://x:2379"}}}
		r.seen.BootstrapName = "c-a"
		l.Etcd = fakeetcd.NewClientset(r.seen.Cluster.DeepCopy())
		if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), resources.Record{BootstrapMember: "c-a"})); err != nil {
			t.Fatal(err)
		}
		if !beside {
			l.deletePVC("c-theirs")
		}
		err := recordBootstrap(t.Context(), r, planner.RecordBootstrap{ClusterID: 1})
		if recorded := resources.ParseRecord(l.record()).ClusterID != ""; recorded == beside || errors.Is(err, reconcile.ErrStale) != beside {
			t.Errorf("%s: it is recorded: %t, error %v", name, recorded, err)
		}
	}
}

// TestTakeBackRecord: the record of the earlier cluster goes on as that of this cluster, with all that it knows.
func TestTakeBackRecord(t *testing.T) {
	t.Parallel()
	l, r := returned(t, true)
	was := l.record()
	was.UID, was.Annotations[resources.AnnotationClusterUID], was.Data["clusterUID"], was.Data["removed"] = "uid-record", "other", "other", "c-z"
	was.OwnerReferences = nil
	if _, err := l.UpdateConfigMap(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if err := takeBack(t.Context(), r, planner.TakeBack{Object: planner.Object{Kind: planner.KindRecord, Name: "c-record", UID: "uid-record"}, ClusterUID: "other"}); err != nil {
		t.Fatal(err)
	}
	if record := resources.ParseRecord(l.record()); !resources.OwnsRecord(l.c, l.record()) || record.ClusterID != "beef" || len(record.Removed) != 1 {
		t.Errorf("it holds %v", l.record().Data)
	}
}

// TestTakeBackSecret: the CA of the earlier cluster goes on to sign.
func TestTakeBackSecret(t *testing.T) {
	t.Parallel()
	l, r := returned(t, true)
	was, err := l.GetSecret(t.Context(), "n", resources.CASecret(l.c))
	if err != nil {
		t.Fatal(err)
	}
	was.UID, was.Annotations[resources.AnnotationClusterUID] = "uid-ca", "other"
	was.Data = map[string][]byte{corev1.TLSPrivateKeyKey: []byte("key")}
	if _, err := l.UpdateSecret(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if err := takeBack(t.Context(), r, planner.TakeBack{Object: planner.Object{Kind: planner.KindSecret, Name: was.Name, UID: "uid-ca"}, ClusterUID: "other"}); err != nil {
		t.Fatal(err)
	}
	ca, err := l.GetSecret(t.Context(), "n", was.Name)
	if err != nil || !resources.Owns(l.c, ca) || string(ca.Data[corev1.TLSPrivateKeyKey]) != "key" || len(ca.OwnerReferences) > 0 {
		t.Errorf("the CA: %v, error %v", ca, err)
	}
}

// unconfirmed says on PVC c-a that it was taken back from a cluster.
func (l *deletedCluster) unconfirmed(from string) {
	l.Helper()
	live, err := l.GetPVC(l.Context(), "n", "c-a")
	if err != nil {
		l.Fatal(err)
	}
	live.Annotations[resources.AnnotationTakenBackFrom] = from
	if _, err := l.UpdatePVC(l.Context(), live); err != nil {
		l.Fatal(err)
	}
}

// TestDeletedBeforeConfirmed: an EtcdCluster that took PVCs back and is deleted before a quorum has confirmed them
// deletes none of them. The next EtcdCluster finds them as those of their earlier cluster.
func TestDeletedBeforeConfirmed(t *testing.T) {
	t.Parallel()
	retain := func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenDeleted: v1beta2.PVCRetain}
	}
	for name, test := range map[string]struct {
		change     func(*v1beta2.EtcdCluster)
		from, want string
		why        string
		alone      bool
	}{
		"whenDeleted is Delete":  {func(*v1beta2.EtcdCluster) {}, "old", "old", resources.RetainedUnconfirmed, false},
		"its cluster is unknown": {func(*v1beta2.EtcdCluster) {}, resources.UnknownClusterUID, resources.UnknownClusterUID, resources.RetainedUnconfirmed, false},
		"whenDeleted is Retain, and a quorum has confirmed another": {retain, "old", "uid", resources.RetainedByPolicy, false},
		"whenDeleted is Retain": {retain, "old", "old", resources.RetainedByPolicy, true},
		"--cascade=orphan":      {func(c *v1beta2.EtcdCluster) { c.Finalizers = append(c.Finalizers, metav1.FinalizerOrphanDependents) }, "old", "uid", resources.RetainedAsOrphan, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newDeletedCluster(t, test.change)
			l.unconfirmed(test.from)
			if test.alone {
				if err := l.Client.DeletePVC(t.Context(), "n", "c-unlabelled", metav1.Preconditions{}); err != nil {
					t.Fatal(err)
				}
			}
			l.dissolve()
			pvc, err := l.GetPVC(t.Context(), "n", "c-a")
			if err != nil {
				t.Fatal(err)
			}
			next := l.c.DeepCopy()
			next.UID = "next"
			if resources.FormerClusterUID(pvc) != test.want || !resources.MayHoldFormerMember(next, pvc) || !resources.IsLabelled(pvc, "c") || pvc.Annotations[resources.AnnotationRetained] != test.why {
				t.Errorf("its labels are %v, its annotations %v", pvc.Labels, pvc.Annotations)
			}
			if _, err := l.GetPVC(t.Context(), "n", "c-unlabelled"); (err == nil) != (test.why != resources.RetainedUnconfirmed && !test.alone) {
				t.Errorf("a PVC of the cluster itself: %v", err)
			}
			if !strings.Contains(strings.Join(l.events, "; "), EventVolumesRetained) {
				t.Errorf("the events are %q", l.events)
			}
		})
	}
}

// TestKeptPVCIsReleased: the PVCs of old members are deleted at the end of a recovery but those that the plan keeps.
func TestKeptPVCIsReleased(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string][]string{"a backup has its data": nil, "nothing is known to have its data": {"c-a"}} {
		l, r := livingCluster(t)
		live, _ := l.GetPVC(t.Context(), "n", "c-a")
		live.Labels[resources.LabelFenced] = "c"
		if _, err := l.UpdatePVC(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		if err := cleanUpOldPVCs(t.Context(), r, planner.CleanUpOldPVCs{Recovery: v1beta2.RecoveryStatus{OldMembers: []string{"c-a"}}, Kept: kept}); err != nil {
			t.Fatal(err)
		}
		pvc, err := l.GetPVC(t.Context(), "n", "c-a")
		if released := err == nil && !resources.Owns(l.c, pvc); released != (kept != nil) {
			t.Errorf("%s: PVC %+v, error %v", name, pvc, err)
		}
	}
}

// TestUnconfirmedPVCIsReleased: whatever deletes the PVC of a cluster that goes on releases one that no quorum has
// confirmed, also if that was not observed.
func TestUnconfirmedPVCIsReleased(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*testing.T, *run) error{
		"its member was removed": func(t *testing.T, r *run) error {
			return deletePVC(t.Context(), r, planner.DeletePVC{Name: "c-a", UID: "uid-c-a"})
		},
		"a recovery has replaced its member": func(t *testing.T, r *run) error {
			return cleanUpOldPVCs(t.Context(), r, planner.CleanUpOldPVCs{Recovery: v1beta2.RecoveryStatus{OldMembers: []string{"c-a"}}})
		},
	} {
		l, r := livingCluster(t)
		l.unconfirmed("old")
		live, _ := l.GetPVC(t.Context(), "n", "c-a")
		live.Labels[resources.LabelFenced] = "c"
		if _, err := l.UpdatePVC(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		if err := act(t, r); err != nil {
			t.Fatal(err)
		}
		if pvc, err := l.GetPVC(t.Context(), "n", "c-a"); err != nil || resources.Owns(l.c, pvc) {
			t.Errorf("%s: PVC %+v, error %v", name, pvc, err)
		}
	}
}
