// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	testClusterID = 0xc0ffee
	testVersion   = "3.6.11"
	testTemplate  = "declared"
	newName       = "c-new"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// observed returns a cluster of the size at rest: its services and its budget are
// as they should be, and its members are the ones that text describes.
//
// Each word of text is a member: its name, then after a colon what is unusual about
// it, separated by commas. Unless told otherwise a member is a healthy voter with a
// ready pod, and the first voter leads.
//
//	learner unstarted unmanaged   what it is to etcd
//	old                          a member of the etcd that the cluster takes over; it has no pod
//	sick unknown noleader        whether it serves
//	nopod notready restarting down terminating overdue finished theirs outdated stale unasked neverran needsnew policy    its pod
//	leaving routed              whether clients are sent away from it, and still led to it
//	claim deadclaim              its volume
//	away=…                      for how many minutes it could not come back by itself
//	ends=…                      how often its container has ended
//	leads                        the others see it as their leader
//	v=… podv=… claimv=…          what it runs, and what its pod and its volume were made for
func observed(t *testing.T, size int, text string, edits ...func(*Observed)) Observed {
	t.Helper()
	o := Observed{
		Now:      testNow,
		NewName:  newName,
		Template: testTemplate,
		Cluster: &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid", Generation: 7, Finalizers: []string{resources.Finalizer}},
			Spec:       v1beta2.ClusterSpec{Replicas: ptr.To(int32(size)), Version: testVersion},
			Status:     v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
		},
		BootstrapName: "a",
		Record: Record{State: Current, Record: resources.Record{
			BootstrapMember: "a", ClusterID: "c0ffee", Log: resources.LogRecord{ClusterID: "c0ffee", Minor: 6, Readable: true},
		}},
		PeerService:   Current,
		ClientService: Current,
		Etcd:          Etcd{Linearizable: true, ClusterID: testClusterID},
	}
	var leader uint64
	for i, word := range strings.Fields(text) {
		name, marks, _ := strings.Cut(word, ":")
		m, p, c, leads := member(t, uint64(i+1), name, marks)
		o.Etcd.Members = append(o.Etcd.Members, m)
		if p != nil {
			o.Pods = append(o.Pods, *p)
		}
		if c != nil {
			o.PVCs = append(o.PVCs, *c)
			persist(&o)
		}
		if leads || (leader == 0 && !m.Learner && m.Started) {
			leader = m.ID
		}
	}
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Health == Healthy {
			m.Leader = leader
		}
	}
	if size > 0 {
		o.PodDisruptionBudget = PodDisruptionBudget{State: Current, MinAvailable: diagnosis.Quorum(max(len(listVoters(o.Etcd.Members)), size))}
	}
	sayStarted(&o)
	for _, edit := range edits {
		edit(&o)
	}
	agree(&o)
	if o.Prepared == nil {
		prepareMissing(&o)
	}
	return o
}

// prepareMissing has as many pods wait as members are missing, the first one called
// newName.
func prepareMissing(o *Observed) {
	o.Prepared, o.PreparedPVCs = []Pod{}, nil
	version, names := o.Cluster.Spec.Version, []string{newName, newName + "2", newName + "3", newName + "4", newName + "5", newName + "6"}
	if v := upgradePathOf(o).joinVersion(); v != "" {
		version = v
	}
	for _, name := range names[:countMissing(o)] {
		o.Prepared = append(o.Prepared, Pod{
			Name: name, UID: "pod-" + name, Owned: true, Running: true, Version: version, Template: testTemplate,
			Restart: resources.RestartRequest(o.Cluster), Trust: o.Trust, Role: PodLearner,
		})
		if isPersistent(o.Cluster) {
			o.PreparedPVCs = append(o.PreparedPVCs, PVC{Name: name, UID: "claim-" + name, Owned: true, Version: version})
		}
	}
}

// unprepared has no pod wait.
func unprepared(o *Observed) { o.Prepared = []Pod{} }

// sayStarted has the last status say of the learners that have started that they have.
func sayStarted(o *Observed) {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Learner && m.Started {
			o.Cluster.Status.MemberStatuses = append(o.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{ID: hexID(m.ID), Name: m.Name, Role: v1beta2.MemberRoleLearner})
		}
	}
}

// agree has every member that responds without a quorum agree with the last status. That
// status does not tell whether a member votes that has not started.
func agree(o *Observed) {
	if o.Etcd.Linearizable {
		return
	}
	list := slices.Clone(o.Etcd.Members)
	for i := range list {
		list[i].Learner = list[i].Learner || !list[i].Started && upgradePathOf(o).knowsLearners()
	}
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.RaftIndex > 0 && m.View == nil && !isGone(podByName(o.Pods, m.Name)) {
			m.View = &View{Learner: m.Learner, Members: list}
		}
	}
}

func member(t *testing.T, id uint64, name, marks string) (Member, *Pod, *PVC, bool) {
	t.Helper()
	m := Member{ID: id, Name: name, Started: true, Health: Healthy, Version: testVersion, RaftIndex: 100}
	p := &Pod{Name: name, UID: "pod-" + name, Node: "node-" + name, Owned: true, Running: true, Ready: true, Version: testVersion, Template: testTemplate, Restart: "asked"}
	var c *PVC
	leads, draining := false, false
	defer func() {
		if p != nil {
			p.Role = PodVoter
			switch {
			case m.Learner:
				p.Role = PodLearner
			case draining:
				p.Role = PodDraining
			}
		}
	}()
	for _, mark := range strings.FieldsFunc(marks, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(mark, "=")
		switch key {
		case "learner":
			m.Learner = true
		case "unstarted":
			m.Started, m.Health, m.Reason, m.Version = false, Unknown, ReasonNotStarted, ""
			if p != nil {
				p.Ready = false
			}
		case "unmanaged":
			m.Unmanaged = true
		case "old":
			m.Unmanaged, m.PeerURLs, p = true, []string{"http://" + name + ".old:2380"}, nil
		case "podless": // nothing tells the controller how it is
			m.Unmanaged, m.PeerURLs, m.OwnName, p = true, []string{"http://" + name + ".old:2380"}, name, nil
			m.Health, m.Reason, m.Version, m.RaftIndex = Unknown, ReasonUnresponsive, "", 0
		case "sick":
			m.Health, m.Reason, m.Version, p.Ready = Unhealthy, ReasonUnresponsive, "", false
		case "unknown":
			m.Health, m.Reason, m.Version = Unknown, ReasonUnresponsive, ""
			if m.Unmanaged {
				m.Message = "it does not respond"
			}
		case "noleader":
			m.Health, m.Reason = Unhealthy, ReasonNoLeader
		case "outdated":
			p.Outdated, p.Running, p.Ready = true, false, false
		case "stale":
			p.Template = "before"
		case "fills":
			p.Fills = true
		case "unasked":
			p.Restart = ""
		case "neverran":
			p.Unstarted = true
		case "needsnew":
			p.NeedsNewPod = true
		case "policy":
			p.FromPolicy = true
		case "notready":
			p.Ready = false
		case "restarting":
			p.Restarting, p.Ready = true, false
		case "down":
			p.Running, p.Ready, m.Health, m.Reason, m.Version = false, false, Unhealthy, ReasonUnresponsive, ""
		case "nopod":
			p, m.Health, m.Reason, m.Version = nil, Unhealthy, ReasonNoPod, ""
		case "terminating":
			p.Terminating, p.EndsBy = true, testNow // for so long that nothing waits for its container
		case "overdue":
			p.Terminating, p.EndsBy = true, testNow.Add(-time.Hour)
		case "away": // minutes
			minutes, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("away %q: %v", value, err)
			}
			m.Health, m.Reason, m.Version, p.Ready = Unhealthy, ReasonUnresponsive, "", false
			p.AwaySince, p.AwayWhy = testNow.Add(-time.Duration(minutes)*time.Minute), "its node is not ready"
		case "stopping":
			p.Terminating, p.DeletionRequested = true, testNow.Add(time.Second-stopLimit)
		case "leaving":
			draining = true
		case "routed":
			p.InEndpoints = true
		case "ends":
			if _, err := fmt.Sscan(value, &p.RestartCount); err != nil {
				t.Fatalf("ends %q: %v", value, err)
			}
		case "finished":
			p.Finished, p.Running, p.Ready, m.Health, m.Reason, m.Version = true, false, false, Unhealthy, ReasonUnresponsive, ""
		case "theirs":
			p.Owned = false
		case "claim", "deadclaim":
			c = &PVC{Name: name, UID: "claim-" + name, Owned: true, Terminating: key == "deadclaim"}
		case "claimv":
			c = &PVC{Name: name, UID: "claim-" + name, Owned: true, Version: value}
		case "leads":
			leads = true
		case "v":
			m.Version = value
		case "podv":
			p.Version = value
		case "index":
			if _, err := fmt.Sscan(value, &m.RaftIndex); err != nil {
				t.Fatalf("index %q: %v", value, err)
			}
		default:
			t.Fatalf("unknown mark %q of member %s", mark, name)
		}
	}
	return m, p, c, leads
}

func persist(o *Observed) {
	o.Cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
}

// noResponse has no member respond, so that none says its cluster ID.
func noResponse(o *Observed) { o.Etcd.ClusterID = 0 }

// noQuorum makes the member list one that could not be read.
func noQuorum(o *Observed) { o.Etcd.Linearizable, o.Etcd.Err = false, "deadline exceeded" }

// neverServed makes the cluster one that has never served: nothing is recorded.
func neverServed(o *Observed) {
	o.Record.ClusterID = ""
	o.Cluster.Status = v1beta2.ClusterStatus{}
	o.ClientService = Missing
}

// unresponsive is neverServed, and etcd has not responded yet.
func unresponsive(o *Observed) {
	neverServed(o)
	noQuorum(o)
	o.Etcd.Members, o.Etcd.ClusterID = nil, 0
}

func wants(v string) func(*Observed) {
	return func(o *Observed) { o.Cluster.Spec.Version = v }
}

// asks is a request to restart every member.
func asks(o *Observed) {
	o.Cluster.Annotations = map[string]string{resources.AnnotationRestart: "asked"}
}

// describe writes a plan on one line.
func describe(p Plan) string {
	parts := make([]string, 0, len(p.Actions)+1)
	for _, a := range p.Actions {
		parts = append(parts, describeAction(a))
	}
	if p.Wait != nil {
		parts = append(parts, "wait "+string(p.Wait.Reason))
	}
	if len(parts) == 0 {
		return string(p.Rule)
	}
	return string(p.Rule) + ": " + strings.Join(parts, ", ")
}

func describeAction(action Action) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", action), "cluster.")
	switch a := action.(type) {
	case WriteRecord:
		return describeRecord(kind, a.Record)
	case EnsurePodDisruptionBudget:
		return fmt.Sprintf("%s %d", kind, a.MinAvailable)
	case RecordBootstrap:
		return fmt.Sprintf("%s %x", kind, a.ClusterID)
	case FindMember:
		return kind + " " + a.Name
	case TakeBack:
		return kind + " " + string(a.Kind) + " " + a.Name
	case RecordRecovery:
		text := kind + " " + string(a.Recovery.Phase)
		if a.Recovery.Phase == v1beta2.RecoveryPhaseFilling {
			text += " from " + a.Recovery.Source.Member
		}
		if len(a.Lost) > 0 {
			text += " lost " + strings.Join(a.Lost, " ")
		}
		if a.Gone != "" {
			text += " gone " + a.Gone
		}
		return text
	case RequestRestore:
		return fmt.Sprintf("%s %s from %s of %d lost ", kind, a.Name, a.Backup, a.Revision) + strings.Join(a.Lost, " ")
	case StopSource:
		return strings.TrimSpace(kind + " " + a.Recovery.Source.Member + " lost " + strings.Join(a.Lost, " "))
	case CreateRecoveryMember:
		return kind + " " + a.Recovery.RecoveryMember
	case DeleteRecoveryMember:
		return kind + " " + a.Name
	case PublishRecoveryMember:
		return kind + " " + a.Name
	case IssueCA:
		switch a.Mode {
		case certificates.CASuccessor:
			kind = "RenewCA"
		case certificates.CAReturned:
			kind = "CompleteCA"
		case certificates.CAFirst, certificates.CAKept, certificates.CAAgain:
		}
		return strings.TrimSpace(kind + " " + a.Request)
	case DropOldCAs:
		if a.ForNext {
			kind += " for the next"
		}
		return kind
	case IssueCertificate:
		if a.Change == certificates.ChangeBundle {
			kind = "KeepCertificate"
		}
		return kind + " " + string(a.Use)
	case RequestCertificate:
		return kind + " " + string(a.Use)
	case RefreshPod:
		return kind + " " + a.Name
	case WriteClientSecret:
		return kind + " " + a.Client + " " + string(a.Change)
	case DeleteClientSecret:
		return kind + " " + a.Name
	case CreateBootstrapPod:
		return strings.TrimSpace(kind + " " + a.Name + " " + a.Version)
	case AddMember:
		if a.As == JoinAsVoter {
			return "AddVoter " + a.Name
		}
		return "AddLearner " + a.Name
	case CreatePod:
		return strings.TrimSpace(kind + " " + a.Name + "[" + strings.Join(a.Peers, " ") + "] " + a.Version)
	case AdmitPod:
		if a.SecondVoter {
			kind += "OfSecondVoter"
		}
		return kind + " " + a.Name + "[" + strings.Join(a.Peers, " ") + "]"
	case PreparePod:
		if a.CreatePVC {
			kind += "AndPVC"
		}
		return strings.TrimSpace(kind + " " + a.Name + " " + a.Version)
	case CreatePVC:
		return kind + " " + a.Name
	case PromoteMember:
		return kind + " " + a.Name
	case RemoveMember:
		return kind + " " + a.Name + " " + string(a.Reason)
	case MoveLeader:
		return kind + " " + a.FromName + ">" + a.ToName
	case DeletePod:
		switch a.Why {
		case DeleteBootstrapPod:
			kind = "DeleteBootstrapPod"
		case DeleteWithoutPVC:
			kind = "DeleteWithoutPVC"
		case DeleteReplaced:
			kind = "DrainReplaced"
		case DeleteDrained:
			kind = "DrainPod"
		case DeletePrepared:
			kind = "DeletePrepared"
		case DeleteObsolete, DeleteHibernated, DeleteUnpublished, DeleteDistrusting:
		}
		return kind + " " + a.Name
	case LabelPod:
		if a.Admit {
			kind = "LabelAndAdmitPod"
		}
		return kind + " " + a.Name + " " + string(a.Role)
	case DeletePVC:
		return kind + " " + a.Name
	case ReleasePVC:
		return kind + " " + a.Name
	case RecordLog:
		return fmt.Sprintf("%s %s 3.%d %d %t", kind, a.Log.ClusterID, a.Log.Minor, a.Log.Index, a.Log.Readable)
	case RecordPutBack:
		return fmt.Sprintf("%s %d", kind, a.PutBack.Round)
	case RecordCorruptVoters:
		return fmt.Sprintf("%s %d", kind, a.Voters)
	case ForceSnapshot:
		return fmt.Sprintf("%s %d", kind, a.Entries)
	case RepairPVC:
		return kind + " " + a.Name
	case ConfirmPVC:
		return kind + " " + a.Name
	case UpgradePod:
		return kind + " " + a.Name + " " + a.Version + restartMode(a.Mode)
	case RecreatePod:
		return kind + " " + a.Name + " " + a.Version + restartMode(a.Mode)
	case Defragment:
		return kind + " " + a.Name + " " + a.Task
	case DisarmNoSpace:
		return fmt.Sprintf("%s %x", kind, a.ID)
	default:
		return kind
	}
}

// describeRecord names the cluster ID, or the bootstrap member of a cluster that has none yet,
// and the recovery.
func describeRecord(kind string, r resources.Record) string {
	text := kind + " " + cmp.Or(r.ClusterID, r.BootstrapMember)
	if r.Recovery != nil {
		text += " " + string(r.Recovery.Phase) + " " + r.Recovery.ID
	}
	return text
}

func restartMode(mode RestartMode) string {
	switch mode {
	case RestartIdle:
		return " idle"
	case RestartWithOutage:
		return " outage"
	case RestartUnresponsive:
		return " unresponsive"
	default:
		return ""
	}
}
