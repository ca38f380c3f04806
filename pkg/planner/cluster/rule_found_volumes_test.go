// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// found adds an object of an earlier cluster with a UID.
func found(kind ObjectKind, name, uid string, edits ...func(*Found)) func(*Observed) {
	return func(o *Observed) {
		f := Found{Object: Object{Kind: kind, Name: name, UID: "found-" + name}, ClusterUID: uid, Labelled: true, Made: testNow, Version: testVersion}
		for _, edit := range edits {
			edit(&f)
		}
		o.Found = append(o.Found, f)
		switch kind {
		case KindPVC:
			o.PVCs = append(o.PVCs, PVC{Name: name, UID: f.UID, HasOtherOwner: true})
		case KindPod:
			o.Pods = append(o.Pods, Pod{Name: name, UID: f.UID, Running: true})
		case KindService, KindRecord, KindBudget, KindSecret:
		}
	}
}

// fromVolumes requests to take the PVCs of the earlier cluster back.
func fromVolumes(o *Observed) {
	persist(o)
	o.Cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
}

// takenBack adds a PVC that was taken back and that no quorum has confirmed.
func takenBack(name, uid string) func(*Observed) {
	return func(o *Observed) {
		withPVC(name, true)(o)
		o.PVCs[len(o.PVCs)-1].TakenBackFrom = uid
	}
}

func TestRuleFoundVolumes(t *testing.T) {
	fresh := func(o *Observed) {
		unresponsive(o)
		o.Record, o.PeerService, o.ClientService = Record{}, Missing, Missing
	}
	volume := func(name string) func(*Observed) { return found(KindPVC, name, "old") }
	returned := func(o *Observed) { // as a backup tool brings a namespace back
		fresh(o)
		o.Record.State, o.PeerService, o.ClientService = NotOwned, NotOwned, NotOwned
		found(KindRecord, "c-record", "old")(o)
		found(KindService, "c", "old")(o)
		found(KindService, "c-client", "old")(o)
		found(KindSecret, "c-ca", "old")(o)
	}
	lateRecord := func(o *Observed) {
		o.Record = Record{State: Current, Record: resources.Record{BootstrapMember: "x", ClusterID: "c0ffee"}}
	}
	missingCA := func(o *Observed) {
		o.Cluster.Spec.TLS = &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}
		o.CA = &certificates.CA{}
		o.Certificates = []certificates.Certificate{{Use: v1beta2.CertificateUseCA, Secret: "c-ca", State: certificates.Missing}}
	}
	const waits = "found-volumes: wait VolumesFound"
	all := "found-volumes: TakeBack secret c-ca, TakeBack PVC x, TakeBack PVC y, TakeBack service c, TakeBack service c-client, TakeBack record c-record"
	checkDecisions(t, []decision{
		{"a new cluster beside nothing", 3, "", edits(fresh), "record: WriteRecord a, CreatePeerService"},
		{"a new cluster beside a PVC of an earlier one does not begin empty", 3, "", edits(fresh, volume("x")), waits},
		{"a PVC that comes after the record was written", 3, "", edits(unresponsive, volume("x")), waits},
		{"a PVC that comes while the bootstrap member runs", 3, "a:claim", edits(neverServed, volume("x")), waits},
		{"a new cluster of size 0 beside a PVC", 0, "", edits(fresh, volume("x")), waits},
		{"a PVC that says no cluster counts", 3, "", edits(fresh, found(KindPVC, "x", resources.UnknownClusterUID)), waits},
		{"the advice to delete the record does not come first", 3, "", edits(returned, volume("x")), waits},
		{"no CA is issued beside data", 3, "", edits(fresh, volume("x"), missingCA), waits},
		{"a record without a PVC is a name conflict", 3, "", edits(returned), "name-conflict: wait NameConflict"},
		{"a cluster that has begun goes on beside a PVC of an earlier one", 1, "a:claim", edits(volume("x")), "steady"},
		{"a cluster that has lost record and status goes on", 1, "b:claim", edits(fresh, noQuorum, volume("x")), "record: WriteRecord unknown, CreatePeerService"},
		{"a restore fills the cluster", 3, "", edits(unresponsive, volume("x"), restore("c", v1beta2.RestorePhaseVerifying)), "bootstrap: wait WaitingForRestore"},
		{"an EtcdRestore that does not exist fills nothing", 3, "", edits(fresh, volume("x"), annotated), waits},
		{"an EtcdRestore that has ended fills nothing", 3, "", edits(fresh, volume("x"), restore("c", v1beta2.RestorePhaseSucceeded)), waits},
		{"PVCs are requested beside the annotation of a restore", 3, "", edits(returned, fromVolumes, volume("x"), volume("y"), annotated), all},
		{"a cluster that took over an etcd before, and whose namespace came back", 3, "", edits(returned, joins, volume("x")), waits},
		{"the etcd that a cluster is to join responds", 3, "x:old y:old z:old", edits(neverServed, joins, volume("v")), waits},
		{"a cluster that has begun to join goes on beside a PVC of an earlier one", 1, "x:old", edits(joins, volume("v")), "take-over: EnsurePodDisruptionBudget 1, AddLearner c-new, AdmitPod c-new[x c-new]"},
		{"PVCs of its own are none of an earlier cluster", 1, "x:old", edits(joins, persist, unprepared, unusedPVC("v")), "take-over: EnsurePodDisruptionBudget 1, PreparePod v, wait WaitingForPod"},

		{"PVCs are requested and none exists", 3, "", edits(fresh, fromVolumes), "found-volumes: wait VolumesNotFound"},
		{"all that came back is taken back, the record last", 3, "", edits(returned, fromVolumes, volume("x"), volume("y")), all},
		{"a service of another cluster is not taken back", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindService, "c", "other")), "found-volumes: TakeBack PVC x"},
		{"a service without the labels of the cluster is not taken back", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindService, "c", "old", func(f *Found) { f.Labelled = false })), "found-volumes: TakeBack PVC x"},
		{"only PVCs are left", 3, "", edits(fresh, fromVolumes, volume("x"), volume("y")), "found-volumes: TakeBack PVC x, TakeBack PVC y"},
		{"a released PVC stays released", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPVC, "y", resources.UnknownClusterUID)), "found-volumes: TakeBack PVC x"},
		{"no PVC says its cluster", 3, "", edits(fresh, fromVolumes, found(KindPVC, "y", resources.UnknownClusterUID)), "found-volumes: TakeBack PVC y"},
		{"half of the PVCs that say no cluster were taken back", 3, "", edits(fresh, fromVolumes, takenBack("x", resources.UnknownClusterUID), found(KindPVC, "y", resources.UnknownClusterUID)), "found-volumes: TakeBack PVC y"},
		{"PVCs of two clusters, and none is requested", 3, "", edits(fresh, volume("x"), found(KindPVC, "y", "older", copied)), waits},
		{"PVCs of two clusters", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPVC, "y", "older")), waits},
		{"a PVC of another cluster beside those that were taken back", 3, "", edits(fresh, fromVolumes, takenBack("x", "old"), found(KindPVC, "y", "older")), waits},
		{"a PVC that garbage collection deletes", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPVC, "y", "old", func(f *Found) { f.Controlled = true })), waits},
		{"the bootstrap member began empty before", 3, "", edits(unresponsive, fromVolumes, withPVC("a", true), volume("x")), waits},
		{"a pod of the earlier cluster that has its PVC", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPod, "x", "old")), "found-volumes: TakeBack PVC x, TakeBack pod x"},
		{"a pod of the earlier cluster that may start empty", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPod, "x", "old", func(f *Found) { f.MayFill = true })), "found-volumes: wait OldPods"},
		{"a pod of the earlier cluster without a PVC", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPod, "y", "old")), "found-volumes: wait OldPods"},
		{"a pod that garbage collection deletes", 3, "", edits(fresh, fromVolumes, volume("x"), found(KindPod, "x", "old", func(f *Found) { f.Controlled = true })), "found-volumes: wait OldPods"},

		{"a PVC is a copy: the cluster whose data it holds still exists", 3, "", edits(returned, fromVolumes, volume("x"), found(KindPVC, "y", "old", copied)), waits},
		{"a pod of a copy is not taken back", 3, "", edits(fresh, fromVolumes, found(KindPVC, "x", "old", copied), found(KindPod, "x", "old")), waits},
		{"a PVC whose cluster may still exist, which cannot be read", 3, "", edits(returned, fromVolumes, volume("x"), found(KindPVC, "y", "old", unchecked)), waits},
		{"a copy of another cluster does not count", 3, "", edits(unresponsive, lateRecord, fromVolumes, takenBack("x", "old"), found(KindPVC, "y", "other", copied)), "recreate-pods: CreatePod x[x]"},
		{"a PVC that comes late is a copy", 3, "", edits(unresponsive, lateRecord, fromVolumes, takenBack("x", "old"), found(KindPVC, "y", "old", copied)), waits},
		{"a cluster that has begun goes on beside a copy", 1, "a:claim", edits(found(KindPVC, "x", "old", copied)), "steady"},

		{"the record is written again when all PVCs are taken back", 3, "", edits(fresh, fromVolumes, takenBack("x", "old"), takenBack("y", "old")), "record: WriteRecord unknown, CreatePeerService"},
		{"the members start on their data", 3, "", edits(unresponsive, lateRecord, fromVolumes, takenBack("x", "old"), takenBack("y", "old")),
			"recreate-pods: CreatePod x[x y], CreatePod y[x y]"},
		{"a PVC that comes late joins them", 3, "", edits(unresponsive, lateRecord, fromVolumes, takenBack("x", "old"), volume("y")), "found-volumes: TakeBack PVC y"},
		{"spec.bootstrap was removed when the first PVC was taken back", 3, "", edits(returned, takenBack("x", "old"), volume("y")),
			"found-volumes: TakeBack secret c-ca, TakeBack PVC y, TakeBack service c, TakeBack service c-client, TakeBack record c-record"},
		{"spec.bootstrap was removed, and a PVC comes late", 3, "", edits(unresponsive, lateRecord, takenBack("x", "old"), volume("y")), "found-volumes: TakeBack PVC y"},
		{"spec.bootstrap was removed, and a restore is awaited", 3, "", edits(unresponsive, lateRecord, takenBack("x", "old"), volume("y"), restore("c", v1beta2.RestorePhaseVerifying)), "found-volumes: TakeBack PVC y"},
		{"spec.bootstrap was removed before a PVC was taken back", 3, "", edits(fresh, volume("x"), volume("y")), waits},
		{"a PVC of another cluster that comes late does not", 3, "", edits(unresponsive, lateRecord, fromVolumes, takenBack("x", "old"), found(KindPVC, "y", "other")), "recreate-pods: CreatePod x[x]"},
		{"a quorum confirms the PVCs of its members", 2, "x y", edits(fromVolumes, takenBack("x", "old"), takenBack("y", "old")), "steady: ConfirmPVC x, ConfirmPVC y"},
		{"a cluster that serves and whose record was lost takes none back", 1, "x:claim", edits(fromVolumes, volume("y"), noRecord), "record: WriteRecord c0ffee"},
		{"after that no PVC is taken back", 1, "x:claim", edits(fromVolumes, volume("y")), "steady"},
		{"one that a quorum lists is not deleted before that is written down", 3, "a:claim b:claim c:learner,down,ends=9,claim", edits(func(o *Observed) { pvcByName(o.PVCs, "c").TakenBackFrom = "old" }),
			"joining: ConfirmPVC c, RemoveMember c CrashLooping, DeletePod c, ReleasePVC c"},
		{"one that no quorum lists is released, never deleted", 1, "x:claim", edits(fromVolumes, takenBack("y", "old")), "orphans: VerifyWrite, ReleasePVC y"},
	})
}

// TestFoundVolumesMessage: the status names each PVC, what it holds, and both ways to go on.
func TestFoundVolumesMessage(t *testing.T) {
	o := observed(t, 3, "", unresponsive, found(KindPVC, "c-x", "old"), found(KindPVC, "c-y", "old"))
	plan := Decide(o)
	if plan.Wait == nil {
		t.Fatalf("it is decided: %s", describe(plan))
	}
	for _, part := range []string{"2 PVCs", "c-x (created 2026-01-02 03:04:05, etcd 3.6.11, cluster UID old)", "c-y"} {
		if !strings.Contains(plan.Wait.Message, part) {
			t.Errorf("the message lacks %q: %s", part, plan.Wait.Message)
		}
	}
	for _, part := range []string{`kubectl patch etcdcluster c -n n --type=merge -p '{"spec":{"bootstrap":{"fromVolumes":{}}}}'`, "kubectl label pvc -n n c-x c-y etcd_cluster- etcd_recovery-"} {
		if !strings.Contains(plan.Wait.Remedy, part) {
			t.Errorf("the remedy lacks %q: %s", part, plan.Wait.Remedy)
		}
	}
}

// TestFoundVolumesOfATakeOver: the patch that the status names is accepted for a cluster that has spec.bootstrap.existing, and
// takes the PVCs back. The other way out is to join that etcd.
func TestFoundVolumesOfATakeOver(t *testing.T) {
	o := observed(t, 3, "", unresponsive, joins, persist, found(KindPVC, "x", "old"))
	w := Decide(o).Wait
	if w == nil || w.Reason != ReasonVolumesFound {
		t.Fatalf("it is decided: %s", describe(Decide(o)))
	}
	const join = "To join the etcd in spec.bootstrap.existing and keep them, take their labels away: kubectl label pvc -n n x etcd_cluster- etcd_recovery-"
	if !strings.Contains(w.Message, "does not join the etcd in spec.bootstrap.existing beside them") || !strings.Contains(w.Remedy, join) {
		t.Errorf("%+v", w)
	}
	_, patch, _ := strings.Cut(w.Remedy, "--type=merge -p '")
	patch, _, _ = strings.Cut(patch, "'")
	patched := o.Cluster.DeepCopy()
	if err := json.Unmarshal([]byte(patch), patched); err != nil { // null takes a field away, as in a merge patch
		t.Fatal(err)
	}
	for _, err := range validation.ValidateEtcdClusterUpdate(patched, o.Cluster) {
		if strings.Contains(err.Field, "bootstrap") {
			t.Errorf("%s: %v", patch, err)
		}
	}
	o.Cluster = patched
	if plan := describe(Decide(o)); plan != "found-volumes: TakeBack PVC x" {
		t.Errorf("%s: %s", patch, plan)
	}
}

// TestFoundProtectedVolumes: the admission policy rejects every command that leaves the label of protected objects on a PVC of an
// earlier cluster, whatever spec.deletionProtection of this cluster is.
func TestFoundProtectedVolumes(t *testing.T) {
	t.Parallel()
	protected := func(f *Found) { f.Protected = true }
	owned := func(f *Found) { f.Protected, f.Controlled = true, true }
	const marks = "etcd_cluster- etcd_recovery- etcd.database.coreos.com/deletion-protection- (as an administrator: "
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"none of them":                          {edits(unresponsive, found(KindPVC, "x", "old")), "kubectl label pvc -n n x etcd_cluster- etcd_recovery-"},
		"of one cluster":                        {edits(unresponsive, found(KindPVC, "x", "old"), found(KindPVC, "y", "old", protected)), "kubectl label pvc -n n x y " + marks},
		"of two clusters":                       {edits(unresponsive, fromVolumes, found(KindPVC, "x", "old"), found(KindPVC, "y", "other", protected)), "kubectl label pvc -n n NAME " + marks},
		"that another owner has":                {edits(unresponsive, fromVolumes, found(KindPVC, "x", "old", owned)), "first: kubectl label pvc x -n n etcd.database.coreos.com/deletion-protection-. Wait until"},
		"that another owner has, not protected": {edits(unresponsive, fromVolumes, found(KindPVC, "x", "old", func(f *Found) { f.Controlled = true })), "Wait until it no longer exists."},
	} {
		plan := Decide(observed(t, 3, "", test.edits...))
		if plan.Wait == nil || plan.Wait.Reason != ReasonVolumesFound || !strings.Contains(plan.Wait.Remedy, test.want) ||
			strings.Contains(plan.Wait.Remedy, resources.LabelProtected) != strings.Contains(test.want, resources.LabelProtected) {
			t.Errorf("%s: %+v", name, plan.Wait)
		}
	}
}

// TestTooFewVolumes: the pods of all PVCs that were taken back have run without a quorum for minutes. Then the quorum
// counts as permanently lost, so that a person can recover from a PVC. A recovery never begins by itself.
func TestTooFewVolumes(t *testing.T) {
	since := func(d time.Duration) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
				Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue, LastTransitionTime: testNow.Add(-d).Format(time.RFC3339),
			})
		}
	}
	back := func(o *Observed) {
		for i := range o.PVCs {
			o.PVCs[i].TakenBackFrom = "old"
		}
	}
	down := func(o *Observed) {
		noQuorum(o)
		fromVolumes(o)
		o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
		o.Cluster.Status.PermanentQuorumLossSince = ptr.To(metav1.NewTime(testNow.Add(-time.Hour)))
	}
	for _, test := range []struct {
		name, members string
		edits         []func(*Observed)
		want          bool
	}{
		{"one pod runs for minutes", "x:sick,index=0,claim", edits(down, back, since(3*time.Minute)), true},
		{"two pods run for minutes", "x:sick,index=0,claim y:sick,index=0,claim", edits(down, back, since(3*time.Minute)), true},
		{"an election may still end", "x:sick,index=0,claim", edits(down, back, since(time.Minute)), false},
		{"a pod does not run", "x:sick,index=0,claim y:down,index=0,claim", edits(down, back, since(3*time.Minute)), false},
		{"a member may serve out of reach", "x:sick,index=0,claim y:unknown,index=0,claim", edits(down, back, since(3*time.Minute)), false},
		{"a quorum has confirmed the PVCs before", "x:sick,index=0,claim", edits(down, since(3*time.Minute)), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, 3, test.members, test.edits...)
			if loss := diagnoseQuorumLoss(&o); loss.Permanent != test.want {
				t.Errorf("permanent: %t, %s", loss.Permanent, loss.Message)
			}
			if plan := Decide(o); plan.Rule != RuleQuorum {
				t.Errorf("it is decided: %s", describe(plan))
			}
		})
	}
}

// TestLabelsToTakeAway: a PVC without the labels that the remedy names is not found, also that of a hidden recovery member,
// which has another label than the others.
func TestLabelsToTakeAway(t *testing.T) {
	for name, labels := range map[string]map[string]string{"a member": resources.Labels("c"), "a hidden recovery member": resources.RecoveryLabels("c")} {
		pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		if !resources.IsLabelled(pvc, "c") {
			t.Errorf("%s is not found", name)
		}
		for _, label := range strings.Fields(withoutLabels) {
			delete(pvc.Labels, strings.TrimSuffix(label, "-"))
		}
		if resources.IsLabelled(pvc, "c") {
			t.Errorf("%s is found with the labels %v", name, pvc.Labels)
		}
	}
}
