// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// whyRelease says why a recovery that reads a PVC must end, so that the member that it has stopped
// starts again; empty if it need not. Any doubt about the loss is enough. So is a person that deletes
// the pod of the recovery member: the next recovery member would fail for the same cause.
func (in *Input) whyRelease(r *v1beta2.RecoveryStatus) string {
	p := in.RecoveryMember.Pod
	switch {
	case r.Source.PVC == "" || !in.refills(r) && in.hasRecoveryPVC(r):
		return "" // no member is stopped, or the recovery member may hold the only copy of its data
	case !in.Facts.QuorumLoss().Permanent:
		return "it is no longer proven that the quorum is permanently lost, and it reads the PVC of member " + r.Source.Member + ", which is stopped"
	case p != nil && p.Terminating && !p.Finished && !in.RecoveryMember.Serves && in.refills(r):
		return "the pod of recovery member " + r.RecoveryMember + " was deleted before it served"
	default:
		return ""
	}
}

// stopSource stops the member whose PVC the recovery reads, and waits until there is evidence that it
// has ended. It returns false if the recovery reads no PVC, or the member has ended.
func (in *Input) stopSource(r *v1beta2.RecoveryStatus) (Decision, bool) {
	if r.Source.PVC == "" || in.Facts.Evidence(r.Source.Member).HasEnded() {
		return Decision{}, false
	}
	waitFor := func(why, remedy string) (Decision, bool) {
		return wait(OnEvent, v1beta2.ReasonOldMemberMayRun, "the recovery reads PVC "+r.Source.PVC+" when its member has ended: "+why, remedy), true
	}
	if unseen := in.Facts.UnseenQuorum(); unseen != "" {
		return waitFor(unseen, "Bring these members back into reach. If they cannot come back, delete their pods: what they have acknowledged meanwhile is lost then.")
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Name != r.Source.Member || p.Evidence != diagnosis.DeletionRequested {
			continue
		}
		return waitFor(in.missingEnd(p.Name, p.Node, p.EndsBy))
	}
	return Decision{Step: StopSource{Recovery: *r, Lost: in.Facts.LostVoters()}}, true
}

// missingEnd says why a pod whose deletion was requested still exists, and what helps once its node is overdue.
func (in *Input) missingEnd(name, node string, endsBy time.Time) (why, remedy string) {
	if IsEndOverdue(in.Now, endsBy) {
		return diagnosis.MissingEnd(name, node), "Bring the node back. " + diagnosis.ConfirmNodeOff
	}
	return "pod " + name + " is being deleted", diagnosis.NoActionYet
}

// waitForEnd waits until the pod of the recovery member has ended.
func (in *Input) waitForEnd(r *v1beta2.RecoveryStatus, then string) Decision {
	p := in.RecoveryMember.Pod
	why, remedy := in.missingEnd(r.RecoveryMember, p.Node, p.EndsBy)
	return wait(OnEvent, ReasonWaitingForRecoveryMember, then+": "+why, remedy)
}

// plan returns the source of a recovery. A recovery without a request reads a PVC only if no other
// member may come back.
func (in *Input) plan(r *v1beta2.RecoveryStatus) (*diagnosis.RecoveryPlan, error) {
	plan, err := in.Facts.PlanRecovery(r.Member)
	if err == nil && plan.PVC != "" && r.Trigger == v1beta2.RecoveryTriggerAutomatic && in.Facts.OnlyVolume() == nil {
		return nil, diagnosis.ErrNoSource
	}
	return plan, err
}

// canReadVolume is true if the source has stopped responding while the recovery member fetches its
// data, and if its PVC can be read instead. A source that has restarted never responds again. The
// delay is for a source that is only busy.
func (in *Input) canReadVolume(r *v1beta2.RecoveryStatus) bool {
	p := in.RecoveryMember.Pod
	if r.Trigger == v1beta2.RecoveryTriggerRestore || r.Source.PVC != "" || p == nil || p.Running || in.RecoveryMember.Serves || in.Now.Sub(p.Made) < sourceGrace {
		return false
	}
	plan, err := in.plan(r)
	return err == nil && plan.PVC != "" && plan.Source.Name == r.Source.Member
}
