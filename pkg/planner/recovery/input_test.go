// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

const (
	testVersion = "3.6.11"
	newName     = "c-new"
	// recoveryMember is the one of a recovery under way.
	recoveryMember = "r"
	// oldID is the cluster ID of the old members, and newID that of the recovery member.
	oldID, newID = "c0ffee", "beef"

	// noLeader and nothing are clusters without a quorum: a responds and the others are lost, or all
	// are lost. serving is one at rest.
	noLeader = "a:noleader,index=90 b:nopod c:nopod"
	nothing  = "a:nopod b:nopod c:nopod"
	serving  = "a b c"

	pending   = v1beta2.RecoveryPhasePending
	filling   = v1beta2.RecoveryPhaseFilling
	cutover   = v1beta2.RecoveryPhaseCutover
	cleaning  = v1beta2.RecoveryPhaseCleaning
	succeeded = v1beta2.RecoveryPhaseSucceeded
	abandoned = v1beta2.RecoveryPhaseAbandoned
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// input returns a bootstrapped cluster of 3 without a request. Each word of text is a member:
// its name, then after a colon what is unusual about it, separated by commas. Otherwise a member
// is a voter that follows a leader, with a ready pod and without a PVC. A quorum responds
// unless a member has another response.
//
//	noleader unreachable nopod  its response; nopod has no pod, too
//	down terminating finished   its pod
//	unready                     its container runs, its pod is not ready, and it does not respond
//	learner claim index=…       a learner; its PVC; its raft index
func input(t *testing.T, text string, edits ...func(*Input)) *Input {
	t.Helper()
	in := &Input{
		Now: testNow, NewName: newName, Desired: Desired{Cluster: "c", Size: 3},
		RecordedID: oldID, ReplacedID: oldID, Bootstrapped: true,
		Linearizable: !strings.Contains(text, "noleader") && !strings.Contains(text, "nopod") && !strings.Contains(text, "down") && text != "",
		ClusterID:    oldID, Facts: &diagnosis.Cluster{HasLearners: true, UnreadFor: time.Hour},
	}
	for i, word := range strings.Fields(text) {
		name, marks, _ := strings.Cut(word, ":")
		addMember(t, in, i+1, name, strings.FieldsFunc(marks, func(r rune) bool { return r == ',' }))
	}
	for _, edit := range edits {
		edit(in)
	}
	if !in.Linearizable {
		agree(in)
	}
	return in
}

func addMember(t *testing.T, in *Input, id int, name string, marks []string) {
	t.Helper()
	m := diagnosis.Member{Name: name, Started: true, Response: diagnosis.FollowsLeader, RaftIndex: 100}
	running, ready, finished, terminating, exists := true, true, false, false, true
	for _, mark := range marks {
		key, value, _ := strings.Cut(mark, "=")
		switch key {
		case "noleader":
			m.Response = diagnosis.NoLeader
		case "unreachable":
			m.Response, m.RaftIndex = diagnosis.NoResponse, 0
		case "nopod":
			m.Response, m.RaftIndex, exists = diagnosis.NoResponse, 0, false
		case "down":
			m.Response, m.RaftIndex, running = diagnosis.NoResponse, 0, false
		case "unready":
			m.Response, m.RaftIndex, ready = diagnosis.NoResponse, 0, false
		case "finished":
			m.Response, m.RaftIndex, running, finished = diagnosis.NoResponse, 0, false, true
		case "terminating":
			terminating = true
		case "learner":
			m.Learner = true
		case "claim":
			in.Facts.PVCs = append(in.Facts.PVCs, diagnosis.PVC{Name: name})
			in.Desired.Persistent = true
		case "index":
			index, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatalf("index %q of member %s: %v", value, name, err)
			}
			m.RaftIndex = index
		default:
			t.Fatalf("unknown mark %q of member %s", mark, name)
		}
	}
	in.Members = append(in.Members, Member{ID: strconv.Itoa(id), Name: name, Version: testVersion})
	in.Facts.Members = append(in.Facts.Members, m)
	if exists {
		evidence := diagnosis.EvidenceFrom(finished, terminating)
		in.Pods = append(in.Pods, Pod{Name: name, Node: "node-" + name, Evidence: evidence})
		in.Facts.Pods = append(in.Facts.Pods, diagnosis.Pod{Name: name, Evidence: evidence, Running: running, Ready: running && ready, LabelledVoter: !m.Learner, RunningFor: time.Hour, Age: time.Hour})
	}
}

// agree has every member that responds agree with the last status.
func agree(in *Input) {
	var list []diagnosis.ListedMember
	for _, m := range in.Facts.Members {
		list = append(list, diagnosis.ListedMember{Name: m.Name, Learner: m.Learner})
	}
	for i := range in.Facts.Members {
		if m := &in.Facts.Members[i]; m.RaftIndex > 0 && m.View == nil && !in.Facts.Evidence(m.Name).IsEnding() {
			m.View = &diagnosis.View{Learner: m.Learner, Members: list}
		}
	}
}

// viewOf has a member say which voters it knows.
func viewOf(name string, voters ...string) func(*Input) {
	return func(in *Input) {
		v := &diagnosis.View{}
		for _, voter := range voters {
			v.Members = append(v.Members, diagnosis.ListedMember{Name: voter})
		}
		i := slices.IndexFunc(in.Facts.Members, func(m diagnosis.Member) bool { return m.Name == name })
		in.Facts.Members[i].View = v
	}
}

// unmanagedPods are ready pods that are labelled voters and that the last status does not know.
func unmanagedPods(ready bool, names ...string) func(*Input) {
	return func(in *Input) {
		for _, name := range names {
			in.Pods = append(in.Pods, Pod{Name: name, Evidence: diagnosis.PodExists})
			in.Facts.Pods = append(in.Facts.Pods, diagnosis.Pod{Name: name, Evidence: diagnosis.PodExists, Running: true, Ready: ready, LabelledVoter: true, RunningFor: time.Hour, Age: time.Hour})
		}
	}
}

// podOf changes the pod of an old member.
func podOf(name string, edit func(*Pod)) func(*Input) {
	return func(in *Input) {
		edit(&in.Pods[slices.IndexFunc(in.Pods, func(p Pod) bool { return p.Name == name })])
	}
}

func endsNow(p *Pod) { p.EndsBy = testNow }

func size(n int) func(*Input) { return func(in *Input) { in.Desired.Size = n } }

func neverServed(in *Input) {
	in.Bootstrapped, in.RecordedID, in.ReplacedID, in.ClusterID = false, "", "", "0"
}

func persist(in *Input) { in.Desired.Persistent = true }

// recoveryPVC is the PVC of a recovery member that was published, or whose labels were lost.
func recoveryPVC(in *Input) {
	in.Facts.PVCs = append(in.Facts.PVCs, diagnosis.PVC{Name: recoveryMember})
}

// asked has the status show a request.
func asked(edits ...func(*v1beta2.RecoveryStatus)) func(*Input) {
	return func(in *Input) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: pending,
			OldMembers: []string{"a", "b", "c"}, RequestedAt: metav1.NewTime(testNow),
		}
		for _, edit := range edits {
			edit(r)
		}
		in.Reported = r
	}
}

// wiped has only the status show a recovery that the record should hold.
func wiped(phase v1beta2.RecoveryPhase, oldID, newID string, edits ...func(*v1beta2.RecoveryStatus)) func(*Input) {
	return asked(append(edits, func(r *v1beta2.RecoveryStatus) {
		r.Phase, r.OldClusterID, r.ClusterID, r.RecoveryMember = phase, oldID, newID, recoveryMember
	})...)
}

// recorded has the record show a recovery.
func recorded(phase v1beta2.RecoveryPhase, edits ...func(*v1beta2.RecoveryStatus)) func(*Input) {
	return func(in *Input) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: phase, RecoveryMember: recoveryMember,
			Source:     v1beta2.RecoverySource{Member: "a", RaftIndex: 90},
			OldMembers: []string{"a", "b", "c"}, OldClusterID: oldID,
		}
		if phase == cutover || phase == cleaning {
			r.ClusterID = newID
		}
		for _, edit := range edits {
			edit(r)
		}
		in.Recorded = r
		if in.Reported == nil {
			in.Reported = r.DeepCopy()
		}
	}
}

func begun(ids ...string) func(*Input) { return func(in *Input) { in.Begun = ids } }

// lostFor is a cluster that recovers by itself, and whose loss was proven for a while.
func lostFor(provenFor time.Duration) func(*Input) {
	return func(in *Input) {
		since := metav1.NewTime(testNow.Add(-provenFor))
		in.Desired.Automatic, in.LostSince = true, &since
	}
}

func later(r *v1beta2.RecoveryStatus)     { r.ID = "two" }
func cancelled(r *v1beta2.RecoveryStatus) { r.Cancelled = true }
func restores(r *v1beta2.RecoveryStatus) {
	r.Trigger, r.Source.Restore, r.Source.Backup = v1beta2.RecoveryTriggerRestore, "back", &v1beta2.BackupPlace{SHA256: "authorized"}
}
func early(r *v1beta2.RecoveryStatus)    { r.RequestedAt = metav1.NewTime(testNow.Add(-time.Hour)) }
func choosesA(r *v1beta2.RecoveryStatus) { r.Member = "a" }

// memberPod is the hidden recovery member with its pod; it serves if it has a cluster ID.
func memberPod(id string, edits ...func(*RecoveryMember)) func(*Input) {
	return func(in *Input) {
		in.RecoveryMember = RecoveryMember{Pod: &RecoveryPod{Running: true}, Hidden: true, Serves: id != "", ClusterID: id}
		for _, edit := range edits {
			edit(&in.RecoveryMember)
		}
	}
}

// unreported is a cluster whose status has lost the request, and restoreOver one whose EtcdRestore does not ask again.
func unreported(in *Input)  { in.Reported = nil }
func restoreOver(in *Input) { in.RestoreOver = true }
func unfilled(in *Input)    { in.RecoveryMember.Unfilled = true }

func hidden(in *Input) { in.RecoveryMember.Hidden = true }
func published(in *Input) {
	in.RecoveryMember.Hidden, in.ClusterID, in.RecordedID = false, newID, newID
}
func crashes(m *RecoveryMember)     { m.Pod.Running = false }
func outdated(m *RecoveryMember)    { m.Pod.Outdated = true }
func terminating(m *RecoveryMember) { m.Pod.Terminating, m.Pod.EndsBy = true, testNow }

// evicted is a recovery member that Kubernetes has ended, which was made some time before now.
func evicted(ago time.Duration) func(*RecoveryMember) {
	return func(m *RecoveryMember) {
		m.Pod.Running, m.Pod.Finished, m.Pod.Waiting, m.Pod.Made = false, true, "Evicted: disk", testNow.Add(-ago)
	}
}

// decision is one row of a table: an input, and what must be decided.
type decision struct {
	name    string
	members string
	edits   []func(*Input)
	want    string
}

func edits(e ...func(*Input)) []func(*Input) { return e }

// goesOn is the decision to look after the cluster as after every cluster.
const goesOn = "goes on"

func checkDecisions(t *testing.T, table []decision) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			d, decides := Decide(input(t, tt.members, tt.edits...))
			if got := describe(d, decides); got != tt.want {
				t.Errorf("decision:\n got %s\nwant %s", got, tt.want)
			}
			if w := d.Wait; w != nil && (w.Reason == "" || w.Message == "" || w.Remedy == "") {
				t.Errorf("a wait must say what for and what would end it: %+v", *w)
			}
		})
	}
}

// describe writes a decision on one line.
func describe(d Decision, decides bool) string {
	if !decides {
		return goesOn
	}
	var parts []string
	if d.Step != nil {
		parts = append(parts, describeStep(d.Step))
	}
	if d.Wait != nil {
		parts = append(parts, "wait "+d.Wait.Reason)
	}
	return strings.Join(parts, ", ")
}

func describeStep(step Step) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", step), "recovery.")
	switch s := step.(type) {
	case Record:
		text := kind + " " + string(s.Recovery.Phase)
		if s.Recovery.Phase == filling {
			text += " from " + s.Recovery.Source.Member
		}
		if len(s.Lost) > 0 {
			text += " lost " + strings.Join(s.Lost, " ")
		}
		if s.Gone != "" {
			text += " gone " + s.Gone
		}
		return text
	case Fill:
		if s.WithoutSource {
			kind += " without source"
		}
		return kind + " " + s.Recovery.RecoveryMember
	case RequestRestore:
		return kind + " " + s.Name + " from " + s.Backup + " lost " + strings.Join(s.Lost, " ")
	default:
		return kind
	}
}

// recordOf returns what a decision records.
func recordOf(t *testing.T, in *Input) v1beta2.RecoveryStatus {
	t.Helper()
	d, _ := Decide(in)
	switch s := d.Step.(type) {
	case Record:
		return s.Recovery
	case Abandon:
		return s.Recovery
	case StartAgain:
		return s.Recovery
	case BeginCutover:
		return s.Recovery
	case Fence:
		return s.Next
	case CleanUp:
		return s.Next
	default:
		t.Fatalf("nothing is recorded: %T", d.Step)
		return v1beta2.RecoveryStatus{}
	}
}
