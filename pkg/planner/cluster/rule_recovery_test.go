// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// lost is a cluster of which only a answers.
const lost = "a:noleader,index=90 b:nopod,index=0 c:nopod,index=0"

// asked puts a request into the status.
func asked(edit ...func(*v1beta2.RecoveryStatus)) func(*Observed) {
	return func(o *Observed) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
			OldMembers: []string{"a", "b", "c"}, RequestedAt: metav1.NewTime(testNow),
		}
		for _, e := range edit {
			e(r)
		}
		o.Cluster.Status.Recovery = r
	}
}

// recorded puts a recovery on the peer service.
func recorded(phase v1beta2.RecoveryPhase, edit ...func(*v1beta2.RecoveryStatus)) func(*Observed) {
	return func(o *Observed) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: phase, Seed: "seed",
			Source:     v1beta2.RecoverySource{Member: "a", RaftIndex: 90},
			OldMembers: []string{"a", "b", "c"}, OldClusterID: "c0ffee",
		}
		if phase == v1beta2.RecoveryPhaseSwitching || phase == v1beta2.RecoveryPhaseCleaning {
			r.ClusterID = "beef"
		}
		for _, e := range edit {
			e(r)
		}
		o.PeerService.Recovery = r
	}
}

func seedPod(id uint64, edit ...func(*Reseed)) func(*Observed) {
	return func(o *Observed) {
		o.Reseed = Reseed{Pod: &Pod{Name: "seed", UID: "pod-seed", Owned: true, Running: true}, Hidden: true, Serves: id != 0, ClusterID: id}
		for _, e := range edit {
			e(&o.Reseed)
		}
	}
}

func crashes(r *Reseed) { r.Pod.Running = false }

// evicted is a seed that Kubernetes has ended, which was made some time before now.
func evicted(ago time.Duration) func(*Reseed) {
	return func(r *Reseed) {
		r.Pod.Running, r.Pod.Finished, r.Pod.Waiting, r.Pod.Made = false, true, "Evicted: disk", testNow.Add(-ago)
	}
}

func stale(r *Reseed)      { r.Pod.Template = "before" }
func otherImage(r *Reseed) { r.Pod.Outdated = true }

// automatic is a cluster that recovers by itself. Its quorum is lost for an hour, and for
// provenFor it has been proven that the loss is permanent.
func automatic(provenFor time.Duration) func(*Observed) {
	return func(o *Observed) {
		unproven(o)
		since := metav1.NewTime(testNow.Add(-provenFor))
		o.Cluster.Status.PermanentQuorumLossSince = &since
	}
}

// unproven is the same while nothing was said of a permanent loss.
func unproven(o *Observed) {
	o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
	o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue,
		LastTransitionTime: testNow.Add(-time.Hour).Format(time.RFC3339),
	}}
}

// later is another recovery than the one that is asked for.
func later(r *v1beta2.RecoveryStatus) { r.ID = "two" }

// begun are the recoveries that were ever begun.
func begun(ids ...string) func(*Observed) {
	return func(o *Observed) { o.PeerService.Recoveries = ids }
}

func cancelled(r *v1beta2.RecoveryStatus) { r.Cancelled = true }
func restores(r *v1beta2.RecoveryStatus)  { r.Trigger = v1beta2.RecoveryTriggerRestore }
func early(r *v1beta2.RecoveryStatus)     { r.RequestedAt = metav1.NewTime(testNow.Add(-time.Hour)) }

const (
	pending   = v1beta2.RecoveryPhasePending
	seeding   = v1beta2.RecoveryPhaseSeeding
	switching = v1beta2.RecoveryPhaseSwitching
	cleaning  = v1beta2.RecoveryPhaseCleaning
	succeeded = v1beta2.RecoveryPhaseSucceeded
	abandoned = v1beta2.RecoveryPhaseAbandoned
)

func TestRecoveryStarts(t *testing.T) {
	checkDecisions(t, []decision{
		{"nobody asks", 3, lost, edits(noQuorum), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"somebody asks", 3, lost, edits(noQuorum, asked()), "recovery: RecordRecovery Seeding from a"},
		{"not while a quorum answers", 3, "a b c:nopod", edits(asked()), "recovery: RecordRecovery Abandoned"},
		{"not when it was cancelled", 3, lost, edits(noQuorum, asked(cancelled)), "recovery: RecordRecovery Abandoned"},
		{"not for a cluster that sleeps", 0, lost, edits(noQuorum, asked()), "recovery: RecordRecovery Abandoned"},
		{"not about members of another time", 3, lost, edits(noQuorum, asked(func(r *v1beta2.RecoveryStatus) { r.OldMembers = []string{"x"} })),
			"recovery: RecordRecovery Abandoned"},
		{"from the one that has lost the least", 5, "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod", edits(noQuorum, asked()),
			"recovery: RecordRecovery Seeding from b"},
		{"from the one that was asked for", 5, "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod",
			edits(noQuorum, asked(func(r *v1beta2.RecoveryStatus) { r.Member = "a" })), "recovery: RecordRecovery Seeding from a"},
		{"of equals from a voter", 5, "a:noleader,learner,index=90 b:noleader,index=90 c:nopod d:nopod e:nopod", edits(noQuorum, asked()),
			"recovery: RecordRecovery Seeding from b"},
		{"from a learner that has more", 3, "a:noleader,learner,index=91 b:noleader,index=90 c:nopod", edits(noQuorum, asked()),
			"recovery: RecordRecovery Seeding from a"},
		{"nobody answers yet", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, asked()), "recovery: wait WaitingForSurvivor"},
		{"nobody answers at all", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, asked(early)), "recovery: RecordRecovery Abandoned"},
		{"a pod that goes is no survivor", 3, "a:noleader,index=90,terminating b:nopod,index=0 c:nopod,index=0", edits(noQuorum, asked()),
			"recovery: wait WaitingForSurvivor"},
		{"by itself, after a while", 3, lost, edits(noQuorum, automatic(time.Hour)), "recovery: RecordRecovery Seeding from a lost b c"},
		{"by itself, but not at once", 3, lost, edits(noQuorum, automatic(time.Second)), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself, but not when the loss was proven just now", 3, lost, edits(noQuorum, unproven), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself, but not a moment too soon", 3, lost, edits(noQuorum, automatic(recoveryGrace-time.Millisecond)), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself only if it is lost for good", 3, "a:noleader,index=90 b:down,index=0 c:nopod,index=0", edits(noQuorum, automatic(time.Hour)),
			"quorum: wait QuorumLost"},
		{"by itself only if a volume cannot bring it back", 3, "a:noleader,claim,index=90 b:down,claim,index=0 c:down,claim,index=0",
			edits(noQuorum, automatic(time.Hour)), "quorum: wait QuorumLost"},
		{"a restore of a cluster that serves", 3, "a b c", edits(asked(restores)), "recovery: RecordRecovery Seeding from "},
		{"a request after an end", 3, lost, edits(noQuorum, recorded(abandoned), asked(func(r *v1beta2.RecoveryStatus) { r.ID = "two" })),
			"recovery: RecordRecovery Seeding from a"},
		{"the same one is over", 3, lost, edits(noQuorum, recorded(abandoned), asked()), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"not once more, after others", 3, lost, edits(noQuorum, asked(), recorded(succeeded, later), begun("one", "two")), "recovery: RecordRecovery Abandoned"},
		{"nor a restore", 3, "a b c", edits(asked(restores), recorded(succeeded, later), begun("one", "two")), "recovery: RecordRecovery Abandoned"},
		{"nor without a record of the last one", 3, "a b c", edits(asked(restores), begun("one")), "recovery: RecordRecovery Abandoned"},
		{"another one, after others", 3, "a b c", edits(asked(restores), recorded(succeeded, later), begun("zero", "two")), "recovery: RecordRecovery Seeding from "},
		{"the one that is to begin anew", 3, lost, edits(noQuorum, asked(), recorded(pending), begun("one")), "recovery: RecordRecovery Seeding from a"},
	})
}

func TestNothingIsLeft(t *testing.T) {
	nothing := "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0"
	backedUp := func(verified bool) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Verified: verified}
		}
	}
	request := "recovery: RequestRestore c-first-aid-c0ffee from nightly lost a b c, wait WaitingForRestore"
	checkDecisions(t, []decision{
		{"the last backup", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true)), request},
		{"not when the loss was proven just now", 3, nothing, edits(noQuorum, unproven, backedUp(true)), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"not at once", 3, nothing, edits(noQuorum, automatic(time.Second), backedUp(true)), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"not unless it may", 3, nothing, edits(noQuorum, backedUp(true)), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"not one that was not verified", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(false)), "recovery: wait BackupNotVerified"},
		{"there is none", 3, nothing, edits(noQuorum, automatic(time.Hour)), "recovery: wait NoBackup"},
		{"not while a member answers", 3, lost, edits(noQuorum, automatic(time.Hour), backedUp(true)), "recovery: RecordRecovery Seeding from a lost b c"},
		{"not while a pod is left", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, automatic(time.Hour), backedUp(true)),
			"quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"not while a volume is left", 3, "a:nopod,claim,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, automatic(time.Hour), backedUp(true)),
			"return: CreatePod a[a b c]"},
		{"not for a cluster that sleeps", 0, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true)), "hibernate"},
		{"again after other members are lost", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true), recorded(succeeded), func(o *Observed) {
			o.PeerService.ClusterID = "beef"
		}), strings.Replace(request, "c0ffee", "beef", 1)},
	})
}

func TestRecoverySeeds(t *testing.T) {
	better := "a:noleader,index=90 b:noleader,index=95 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0"
	checkDecisions(t, []decision{
		{"the seed is made", 3, lost, edits(noQuorum, recorded(seeding)), "recovery: CreateReseed seed"},
		{"and waited for", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: wait WaitingForSeed"},
		{"others may come back meanwhile", 3, "a:noleader,claim,index=90 b:claim,nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: CreatePod b[a b c], wait WaitingForSeed"},
		{"a quorum that comes back goes on untouched", 3, "a b c:nopod", edits(recorded(seeding), seedPod(0xbeef)),
			"recovery: DropSeed seed, RecordRecovery Abandoned"},
		{"it serves", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0xbeef)), "recovery: ProveWrite, RecordRecovery Switching"},
		{"as another cluster it must", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0xc0ffee)), "recovery: wait WaitingForSeed"},
		{"cancelled", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0xbeef), asked(cancelled)), "recovery: DropSeed seed, RecordRecovery Abandoned"},
		{"asleep", 0, lost, edits(noQuorum, recorded(seeding), seedPod(0xbeef)), "recovery: DropSeed seed, RecordRecovery Abandoned"},
		{"the source has gone on", 3, "a:noleader,index=91 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, recorded(seeding), seedPod(0xbeef)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"a better one answers", 5, better, edits(noQuorum, recorded(seeding), seedPod(0xbeef)), "recovery: DropSeed seed, RecordRecovery Pending"},
		{"unless this one was asked for", 5, better,
			edits(noQuorum, recorded(seeding, func(r *v1beta2.RecoveryStatus) { r.Member = "a" }), seedPod(0xbeef)),
			"recovery: ProveWrite, RecordRecovery Switching"},
		{"and that one has gone on", 3, "a:noleader,index=91 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding, func(r *v1beta2.RecoveryStatus) { r.Member = "a" }), seedPod(0xbeef)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"the source is gone and the seed serves", 3, "a:nopod,index=0 b:noleader,index=80 c:nopod,index=0", edits(noQuorum, recorded(seeding), seedPod(0xbeef)),
			"recovery: ProveWrite, RecordRecovery Switching"},
		{"the source is gone before", 3, "a:nopod,index=0 b:noleader,index=80 c:nopod,index=0", edits(noQuorum, recorded(seeding), seedPod(0)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"the seed is taken away", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0, func(r *Reseed) { r.Pod.Terminating = true })),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"it never starts as it was declared", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0, crashes, stale)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"it never starts from its image", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0, crashes, otherImage)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"it never starts as it is declared", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0, crashes)), "recovery: wait WaitingForSeed"},
		{"it runs as it was declared", 3, lost, edits(noQuorum, recorded(seeding), seedPod(0, stale)), "recovery: wait WaitingForSeed"},
		{"it may hold the only copy", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0, crashes, stale)), "recovery: wait WaitingForSeed"},
		{"nobody answers, and the source may come back", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: wait WaitingForSeed"},
		{"the source is gone, and nobody else answers", 3, "a:nopod,index=0 b:down,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: wait SourceLost"},
		{"who can come back does, meanwhile", 3, "a:nopod,index=0 b:claim,nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: CreatePod b[a b c], wait SourceLost"},
		{"who was declared badly is mended, meanwhile", 3, "a:claim,down,index=0 b:claim,down,stale,index=0 c:claim,down,stale,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0)), "recovery: RecreatePod b " + testVersion + " waiting, RecreatePod c " + testVersion + " waiting, wait WaitingForSeed"},
		{"a person deletes the seed", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding), seedPod(0, func(r *Reseed) { r.Pod.Terminating = true })), "recovery: DropSeed seed, RecordRecovery Pending"},
		{"and it is gone", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(seeding)), "recovery: DropSeed seed, RecordRecovery Pending"},
		{"then the recovery is given up", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(pending, early)), "recovery: DropSeed seed, RecordRecovery Abandoned"},
		{"a restore that never starts as it was declared", 3, "a b c", edits(recorded(seeding, restores), seedPod(0, crashes, stale)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"a restore leaves the cluster alone meanwhile", 3, "a b c", edits(recorded(seeding, restores), seedPod(0)), "steady"},
		{"and looks after it", 3, "a b", edits(recorded(seeding, restores), seedPod(0)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a restore whose seed is evicted", 3, "a b c", edits(recorded(seeding, restores, early), seedPod(0, evicted(time.Hour-time.Second))),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"and evicted again", 3, "a b c", edits(recorded(seeding, restores, early), seedPod(0, evicted(time.Minute))), "steady"},
		{"until it is declared otherwise", 3, "a b c", edits(recorded(seeding, restores, early), seedPod(0, evicted(time.Minute), stale)),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"or has waited", 3, "a b c", edits(recorded(seeding, restores, early), seedPod(0, evicted(maxSeedPause))),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"a new cluster waits, too", 3, "", edits(silent, recorded(seeding, restores, early), seedPod(0, evicted(time.Minute))), "recovery: wait WaitingForSeed"},
		{"by a clock that was set back it does not", 3, "a b c", edits(recorded(seeding, restores, early), seedPod(0, evicted(-time.Minute))),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"a survivor is never waited with", 3, lost, edits(noQuorum, recorded(seeding, early), seedPod(0, evicted(time.Minute))),
			"recovery: DropSeed seed, RecordRecovery Pending"},
		{"a restore that serves", 3, "a b c", edits(recorded(seeding, restores), seedPod(0xbeef)), "recovery: ProveWrite, RecordRecovery Switching"},
		{"beside an old member whose end is overdue", 3, "a b c:terminating", edits(recorded(seeding, restores), seedPod(0xbeef)), "recovery: wait OldMemberMayRun"},
		{"beside one that is about to end", 3, "a b c:terminating", edits(recorded(seeding, restores), seedPod(0xbeef), func(o *Observed) { o.pod("c").EndsBy = o.Now }),
			"recovery: ProveWrite, RecordRecovery Switching"},
		{"beside one that has ended", 3, "a b c:terminating", edits(recorded(seeding, restores), seedPod(0xbeef), func(o *Observed) { o.pod("c").Finished = true }),
			"recovery: ProveWrite, RecordRecovery Switching"},
		{"a restore of a new cluster", 3, "", edits(silent, recorded(seeding, restores), seedPod(0)), "recovery: wait WaitingForSeed"},
		{"a record that somebody wiped", 3, lost, edits(noQuorum, asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID = seeding, "c0ffee" })),
			"recovery: RecordRecovery Seeding from "},
		{"a status from before a later recovery", 3, "a b c", edits(asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID, r.Seed = seeding, "0ld", "x" })),
			"recovery: DropSeed x, RecordRecovery Abandoned"},
		{"and a seed that was let in is none any more", 3, "a b seed", edits(asked(restores, func(r *v1beta2.RecoveryStatus) {
			r.Phase, r.OldClusterID, r.ClusterID, r.Seed = switching, "0ld", "c0ffee", "seed"
		})),
			"recovery: DropSeed seed, RecordRecovery Abandoned"},
		{"but for the end of that", 3, "a b seed", edits(asked(restores, func(r *v1beta2.RecoveryStatus) {
			r.Phase, r.OldClusterID, r.ClusterID, r.Seed = cleaning, "0ld", "c0ffee", "seed"
		})),
			"recovery: RecordRecovery Cleaning"},
		{"and everything on the service was wiped", 3, "a b c", edits(asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID, r.Seed = seeding, "0ld", "x" }),
			func(o *Observed) { o.PeerService.ClusterID = "" }), "recovery: RecordBootstrap c0ffee, DropSeed x, RecordRecovery Abandoned"},
	})
}

func TestRecoverySwitches(t *testing.T) {
	hidden := func(o *Observed) { o.Reseed.Hidden = true }
	revealed := func(o *Observed) { o.Reseed.Hidden, o.Etcd.ClusterID, o.PeerService.ClusterID = false, 0xbeef, "beef" }
	checkDecisions(t, []decision{
		{"the old members go", 3, lost, edits(noQuorum, recorded(switching), seedPod(0xbeef)), "recovery: Retire, RecordRecovery Cleaning"},
		{"even if their quorum is back", 3, "a b c", edits(recorded(switching), seedPod(0xbeef)), "recovery: Retire, RecordRecovery Cleaning"},
		{"not before the seed serves", 3, lost, edits(noQuorum, recorded(switching), seedPod(0)), "recovery: wait WaitingForSeed"},
		{"the seed is lost without a volume, and all that it was filled from", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(switching)), "recovery: RecordRecovery Abandoned gone seed"},
		{"a volume of it may be left", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(switching), func(o *Observed) { o.Reseed.Hidden = true }), "recovery: CreateReseed seed"},
		{"and so may those of the old members", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(switching), persist), "recovery: CreateReseed seed"},
		{"one of them may answer again", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(switching)), "recovery: CreateReseed seed"},
		{"a backup is still there", 3, "", edits(noQuorum, recorded(switching, restores)), "recovery: CreateReseed seed"},
		{"the seed comes back", 3, lost, edits(noQuorum, recorded(switching)), "recovery: CreateReseed seed"},
		{"it never starts as it was declared", 3, lost, edits(noQuorum, recorded(switching), seedPod(0, crashes, stale)), "recovery: DeletePod seed"},
		{"on its volume it can start otherwise", 3, "", edits(noQuorum, persist, recorded(switching), seedPod(0, crashes, stale)),
			"recovery: DeletePod seed"},
		{"it may hold the only copy", 3, "", edits(noQuorum, recorded(switching), seedPod(0, crashes, stale)), "recovery: wait WaitingForSeed"},
		{"no way back", 3, lost, edits(noQuorum, recorded(switching), seedPod(0xbeef), asked(cancelled)), "recovery: Retire, RecordRecovery Cleaning"},
		{"the seed is let in", 3, "", edits(noQuorum, recorded(cleaning), hidden), "recovery: Reveal seed"},
		{"and proves itself", 3, "seed", edits(recorded(cleaning), revealed), "recovery: ProveWrite, DropRetired, RecordRecovery Succeeded"},
		{"volumes stay until it does", 3, "seed:sick", edits(noQuorum, recorded(cleaning), revealed), "quorum: wait QuorumLost"},
		{"nobody has answered yet", 3, "seed:sick", edits(noQuorum, recorded(cleaning), revealed, func(o *Observed) {
			o.Etcd.Members = o.Etcd.Members[:0]
			for _, name := range []string{"a", "b", "c"} {
				o.Etcd.Members = append(o.Etcd.Members, Member{Name: name})
			}
		}), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"and when it is lost at once", 3, "seed:nopod", edits(noQuorum, recorded(cleaning), revealed), "recovery: RecordRecovery Succeeded"},
		{"then it grows", 3, "seed", edits(recorded(succeeded), revealed), "scale-up: AddLearner c-new, AdmitPod c-new[seed c-new]"},
	})
}

func TestACloneNeverStartsEmpty(t *testing.T) {
	clone := func(o *Observed) {
		silent(o)
		o.Cluster.Annotations = map[string]string{v1beta2.AnnotationRestore: "r"}
	}
	checkDecisions(t, []decision{
		{"it waits", 3, "", edits(clone), "bootstrap: wait WaitingForRestore"},
		{"and starts from the backup", 3, "", edits(clone, asked(restores, func(r *v1beta2.RecoveryStatus) { r.OldMembers = nil })),
			"recovery: RecordRecovery Seeding from "},
	})
}

func TestRecoveryIsTold(t *testing.T) {
	o := observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum)
	status := Status(o, Decide(o))
	message := ""
	for _, c := range status.Conditions {
		if c.Type == v1beta2.ClusterConditionQuorumLost {
			message = c.Message
		}
	}
	for _, want := range []string{"a (raft index 90)", "etcdclusters/c/recover", "dryRun=All"} {
		if !strings.Contains(message, want) {
			t.Errorf("QuorumLost does not say %q: %s", want, message)
		}
	}
	if *status.Tolerance >= 0 || status.MemberStatuses[0].RaftIndex != 90 {
		t.Errorf("tolerance %d, raft index %d", *status.Tolerance, status.MemberStatuses[0].RaftIndex)
	}
	plan := Decide(observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum, asked()))
	record := plan.Actions[0].(RecordRecovery).Recovery
	if loss := record.ExpectedLoss; !strings.Contains(loss, "raft index 90") || !strings.Contains(loss, "c does not answer") {
		t.Errorf("the plan says %q", loss)
	}
	if record.Seed != newName || record.OldClusterID != "c0ffee" || record.RevisionBump != revisionBump || record.Source.Member != "a" ||
		record.Version != testVersion || len(record.Survivors) != 1 {
		t.Errorf("the plan is %+v", record)
	}
}

// TestRecoveryOfAnEtcdThatCannotRaiseTheRevision: what its program does not know is not
// asked of it, and that is said before it is done.
func TestRecoveryOfAnEtcdThatCannotRaiseTheRevision(t *testing.T) {
	old := func(version string) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Spec.Version = version
			for i := range o.Etcd.Members {
				o.Etcd.Members[i].Version = version
			}
		}
	}
	for version, bump := range map[string]int64{"3.3.27": 0, "3.4.23": 0, "3.5.9": 0, "3.4.27": revisionBump, "3.5.10": revisionBump} {
		plan := Decide(observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum, asked(), old(version)))
		record := plan.Actions[0].(RecordRecovery).Recovery
		if record.Version != version || record.RevisionBump != bump || strings.Contains(record.ExpectedLoss, "cannot raise the revision") != (bump == 0) {
			t.Errorf("%s: the plan is %+v", version, record)
		}
	}
}

// TestSourceLostIsTold: the status names who is gone, and what a person can do.
func TestSourceLostIsTold(t *testing.T) {
	o := observed(t, 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", noQuorum, recorded(seeding), seedPod(0))
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Reason != "SourceLost" || !strings.Contains(b.Message, "member a") || !strings.Contains(b.Unblock, "delete pod seed") {
		t.Errorf("blocked by %+v", b)
	}
	if !strings.Contains(status.Recovery.Message, "is gone with its data") {
		t.Errorf("the recovery says %q", status.Recovery.Message)
	}
}

// TestWayOut: that it goes on by itself is said only where it does.
func TestWayOut(t *testing.T) {
	for text, byItself := range map[string]bool{
		"a:noleader,index=90 b:nopod,index=0 c:nopod,index=0": true,
		"a:noleader,index=90 b:down,index=0 c:nopod,index=0":  false,
	} {
		o := observed(t, 3, text, noQuorum, automatic(time.Second))
		loss := o.quorumLoss()
		if loss.forGood != byItself || strings.Contains(loss.unblock, "nothing: after") != byItself || strings.Contains(loss.unblock, "/recover ") == byItself {
			t.Errorf("%s: for good %t: %s", text, loss.forGood, loss.unblock)
		}
	}
}

// TestWayOutByABackup: the request that restores the last backup is named where there is
// one, and only where nothing is left that could come back.
func TestWayOutByABackup(t *testing.T) {
	nothing, volume := "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", "a:down,claim,index=0 b:nopod,index=0 c:nopod,index=0"
	for _, test := range []struct {
		members string
		last    *v1beta2.LastBackup
		named   bool
	}{
		{nothing, &v1beta2.LastBackup{Name: "nightly", Verified: true}, true},
		{nothing, &v1beta2.LastBackup{Name: "nightly"}, false},
		{nothing, nil, false},
		{volume, &v1beta2.LastBackup{Name: "nightly", Verified: true}, false},
	} {
		o := observed(t, 3, test.members, noQuorum)
		o.Cluster.Status.LastBackup = test.last
		way := o.quorumLoss().unblock
		if named := strings.Contains(way, "etcdclusters/c/restore") && strings.Contains(way, "EtcdBackup nightly"); named != test.named || !strings.Contains(way, "with an EtcdRestore") {
			t.Errorf("%s with %+v: %s", test.members, test.last, way)
		}
	}
}

// TestASecondSeedSaysWhy: what has ended the one before is said as long as the next one is
// filled, and not any more once that serves.
func TestASecondSeedSaysWhy(t *testing.T) {
	why := func(r *v1beta2.RecoveryStatus) { restores(r); r.Message = "it was evicted" }
	recordOf := func(o Observed) v1beta2.RecoveryStatus {
		for _, a := range Decide(o).Actions {
			if record, ok := a.(RecordRecovery); ok {
				return record.Recovery
			}
		}
		t.Fatal("nothing is recorded")
		return v1beta2.RecoveryStatus{}
	}
	if r := recordOf(observed(t, 3, "a b c", recorded(pending, why))); r.Phase != seeding || r.Message != "it was evicted" {
		t.Errorf("the next seed: %s %q", r.Phase, r.Message)
	}
	if r := recordOf(observed(t, 3, "a b c", recorded(seeding, why), seedPod(0xbeef))); r.Phase != switching || r.Message != "" {
		t.Errorf("it serves: %s %q", r.Phase, r.Message)
	}
}
