// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// logIs writes the record of the log, and has every member that responds at an index.
func logIs(r resources.LogRecord, index uint64) func(*Observed) {
	return func(o *Observed) {
		o.Record.Log = r
		for i := range o.Etcd.Members {
			if m := &o.Etcd.Members[i]; m.Health == Healthy {
				m.RaftIndex, m.RaftApplied = index, index
			}
		}
	}
}

// lags has one member behind the others.
func lags(i int, by uint64) func(*Observed) {
	return func(o *Observed) { o.Etcd.Members[i].RaftApplied -= by }
}

func TestPrepareLog(t *testing.T) {
	const next = "3.7.0"
	counts := func(n int64) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Spec.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To(n)}
			for i := range o.Pods {
				o.Pods[i].Log.SnapshotCount = uint64(n)
			}
		}
	}
	variable := func(name, value string) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: name, Value: value}}}
		}
	}
	flag := func(arg string) func(*Observed) {
		return func(o *Observed) { o.Cluster.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{arg}} }
	}
	begun := resources.LogRecord{ClusterID: "c0ffee", Minor: 6, Index: 100}
	done := resources.LogRecord{ClusterID: "c0ffee", Minor: 6, Readable: true}
	other := resources.LogRecord{ClusterID: "bad", Minor: 6, Readable: true}
	fromOld, oldDone := resources.LogRecord{ClusterID: "c0ffee", Minor: 5, Index: 100}, resources.LogRecord{ClusterID: "c0ffee", Minor: 5, Readable: true}
	const old = "a:v=3.5.35,podv=3.5.35 b:v=3.5.35,podv=3.5.35 c:v=3.5.35,podv=3.5.35"
	up := wants(next)
	checkDecisions(t, []decision{
		{"one that was born on 3.6", 3, "a b c", edits(up, logIs(done, 100)), "rollout: UpgradePod b 3.7.0"},
		{"where the log stands is noted first", 3, "a b c", edits(up, logIs(resources.LogRecord{}, 120)), "rollout: RecordLog c0ffee 3.6 120 false, wait PreparingLog"},
		{"what was noted of another etcd does not count", 3, "a b c", edits(up, logIs(other, 120)), "rollout: RecordLog c0ffee 3.6 120 false, wait PreparingLog"},
		{"entries are added to a log that is recorded as not readable", 3, "a b c", edits(up, logIs(begun, 120)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"no further than it must", 3, "a b c", edits(up, logIs(begun, 10590)), "rollout: ForceSnapshot 10, wait PreparingLog"},
		{"every member must have come so far", 3, "a b c", edits(up, logIs(begun, 10600), lags(2, 1)), "rollout: wait PreparingLog"},
		{"the record says that the log is readable when every member has come so far", 3, "a b c", edits(up, logIs(begun, 10600)), "rollout: RecordLog c0ffee 3.6 100 true, wait PreparingLog"},
		{"snapshots that come late take longer", 3, "a b c", edits(up, counts(50000), logIs(begun, 10600)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"a variable delays the snapshots", 3, "a b c", edits(up, variable("ETCD_SNAPSHOT_COUNT", "50000"), logIs(begun, 10600)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"a flag and a variable: the larger one counts", 3, "a b c", edits(up, counts(100), variable("ETCD_SNAPSHOT_COUNT", "50000"), logIs(begun, 10600)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"a leader keeps more in memory by a flag", 3, "a b c", edits(up, flag("--snapshot-catchup-entries=20000"), logIs(begun, 20599)), "rollout: ForceSnapshot 1, wait PreparingLog"},
		{"a leader of 3.5 keeps more in memory by a flag", 3, old, edits(flag("--experimental-snapshot-catchup-entries=20000"), logIs(fromOld, 120599)), "rollout: ForceSnapshot 1, wait PreparingLog"},
		{"a leader keeps more in memory by a variable", 3, "a b c", edits(up, variable("ETCD_SNAPSHOT_CATCHUP_ENTRIES", "20000"), logIs(begun, 20599)), "rollout: ForceSnapshot 1, wait PreparingLog"},
		{"what a leader keeps in memory must be past, too", 3, "a b c", edits(up, counts(100), logIs(begun, 5599)), "rollout: ForceSnapshot 1, wait PreparingLog"},
		{"not while one does not respond", 3, "a b c:sick", edits(up, logIs(resources.LogRecord{}, 120)), "rollout: wait PreparingLog"},
		{"the log is not recorded as readable while one member cannot be reached", 3, "a b c:unknown", edits(up, logIs(begun, 10600)), "rollout: wait PreparingLog"},
		{"one that took the step before need not", 3, "a b c:v=,podv=3.7.0,sick", edits(up, logIs(begun, 10600)), "rollout: RecordLog c0ffee 3.6 100 true, wait PreparingLog"},
		{"a member that joins meanwhile has the version of the others", 3, "a b", edits(up, logIs(begun, 120), unprepared), "scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"a member that joins after the log was prepared has the declared version", 3, "a b", edits(up, logIs(done, 120)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"what is not declared any more is not prepared for", 3, "a b c", edits(logIs(begun, 120)), "steady"},
		{"to 3.6 the same is needed", 3, old, edits(logIs(resources.LogRecord{}, 120)), "rollout: RecordLog c0ffee 3.5 120 false, wait PreparingLog"},
		{"the log takes longer before 3.6", 3, old, edits(logIs(fromOld, 105599)), "rollout: ForceSnapshot 1, wait PreparingLog"},
		{"the log before 3.6 is recorded as readable", 3, old, edits(logIs(fromOld, 105600)), "rollout: RecordLog c0ffee 3.5 100 true, wait PreparingLog"},
		{"nothing is needed before 3.6 in a cluster that was created with 3.5", 3, old, edits(logIs(oldDone, 120)), "rollout: UpgradePod b 3.6.11"},
		{"a cluster that was created with 3.5 needs the same before 3.7", 3, "a b c", edits(up, logIs(oldDone, 120)), "rollout: RecordLog c0ffee 3.6 120 false, wait PreparingLog"},
		{"to 3.5 nothing is needed", 3, "a:v=3.4.30,podv=3.4.30 b:v=3.4.30,podv=3.4.30 c:v=3.4.30,podv=3.4.30", edits(wants("3.5.35"), logIs(resources.LogRecord{}, 120)), "rollout: UpgradePod b 3.5.35"},
		{"from 3.7 on nothing is needed", 3, "a:v=3.7.0,podv=3.7.0 b:v=3.7.0,podv=3.7.0 c:v=3.7.0,podv=3.7.0", edits(wants("3.8.0"), logIs(resources.LogRecord{}, 120)), "rollout: UpgradePod b 3.8.0"},
		{"one that does not run is not repaired with the new version", 3, "a b c:down", edits(up, logIs(begun, 120)), "rollout: wait PreparingLog"},
		{"what else is declared comes with the version", 3, "a:claim,stale b:claim,stale c:claim,stale", edits(up, logIs(begun, 120)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"what else is declared comes with the version, without PVCs", 3, "a:stale b:stale c:stale", edits(up, logIs(begun, 120)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"what else is declared comes with the version, also to one that joins", 3, "a:stale b:stale", edits(up, logIs(begun, 120)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"what else is declared comes with the version in a cluster of one", 1, "a:claim,stale", edits(up, logIs(begun, 120)), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"both come together", 3, "a:claim,stale b:claim,stale c:claim,stale", edits(up, logIs(done, 120)), "rollout: RecreatePod b 3.7.0"},
		{"one that has long not served is repaired meanwhile", 3, "a:claim,stale b:claim,stale c:claim,stale,sick", edits(up, logIs(begun, 120), degradedFor(diagnosis.ReturnGrace, "c")), "repair: RecreatePod c 3.6.11"},
		{"one whose node reboots is not", 3, "a:claim,stale b:claim,stale c:claim,stale,down", edits(up, logIs(begun, 120), degradedFor(5*time.Minute, "c")), "rollout: wait PreparingLog"},
		{"one that has not served for a moment is not", 3, "a:claim,stale b:claim,stale c:claim,stale,sick", edits(up, logIs(begun, 120)), "rollout: wait PreparingLog"},
		{"nothing is prepared for a version that is too early", 3, "a:v=3.6.5,podv=3.6.5,claim,stale b:v=3.6.5,podv=3.6.5,claim,stale c:v=3.6.5,podv=3.6.5,claim,stale", edits(up, logIs(begun, 120)), "rollout: RecreatePod b 3.6.5"},
		{"nothing is prepared for a version that one member must not follow", 3, "a:v=3.5.35,podv=3.5.35,claim,stale b:v=3.5.35,podv=3.5.35,claim,stale c:v=3.7.0,podv=3.7.0,claim", edits(wants("3.6.5"), logIs(fromOld, 120)), "rollout: RecreatePod b 3.5.35"},
		{"nothing is prepared for a version that the cluster has left behind", 3, "a:claim,stale b:claim,stale c:claim,stale", edits(up, logIs(begun, 120), func(o *Observed) { o.Etcd.ClusterVersion = "3.8.0" }), "rollout: RecreatePod b 3.6.11"},
		{"members that were started with later snapshots", 3, "a b c", edits(up, logIs(begun, 10600), func(o *Observed) { o.Pods[0].Log.SnapshotCount = 50000 }), "rollout: ForceSnapshot 2000, wait PreparingLog"},
		{"the bootstrap member of a new cluster is noted as readable", 3, "a", edits(neverServed), "bootstrap: RecordBootstrap c0ffee"},
	})
	for version, want := range map[string]uint{"3.4.30": 0, "3.5.35": 5, "3.6.11": 6, "3.7.3": 7} {
		o := observed(t, 3, "a:v="+version+",podv="+version, neverServed)
		got := Decide(o).Actions[0].(RecordBootstrap)
		if got.Log.Readable != (want > 0) || got.Log.Minor != want || (want > 0 && got.Log.ClusterID != "c0ffee") {
			t.Errorf("a cluster that is born on %s: %+v", version, got)
		}
	}
}

// TestRemedyOfNewFlag: the next member gets a declared flag before the declared version while the log is prepared. If it
// ends, the wait says what may be the cause.
func TestRemedyOfNewFlag(t *testing.T) {
	for members, want := range map[string]bool{
		"a:stale b:stale c:learner,down,ends=1": true,
		"a:stale b:stale c:learner,down":        false,
		"a b c:learner,down,ends=1":             false,
	} {
		plan := Decide(observed(t, 3, members, wants("3.7.0"), logIs(resources.LogRecord{ClusterID: "c0ffee", Minor: 6, Index: 100}, 120)))
		if plan.Rule != RuleJoining || plan.Wait == nil || strings.Contains(plan.Wait.Remedy, "declare the version and that flag again") != want {
			t.Errorf("%s: rule %v, %+v, want the remedy: %t", members, plan.Rule, plan.Wait, want)
		}
	}
}
