// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Action is what is done.
type Action string

// Values of Action.
const (
	// ActionNone waits.
	ActionNone Action = ""
	// ActionVerify makes the Job of Plan.Check.
	ActionVerify Action = "verify"
	// ActionAddFinalizer puts Finalizer on the restore.
	ActionAddFinalizer Action = "addFinalizer"
	// ActionCreateCluster makes Plan.Cluster.
	ActionCreateCluster Action = "createCluster"
	// ActionBackUpFirst makes Plan.Copy.
	ActionBackUpFirst Action = "backUpFirst"
	// ActionRequestRecovery asks the cluster for Plan.Recovery.
	ActionRequestRecovery Action = "requestRecovery"
	// ActionCancelRecovery tells the cluster that the recovery is not wanted any more.
	ActionCancelRecovery Action = "cancelRecovery"
	// ActionDeleteCluster deletes the cluster that the restore has made and that never served.
	ActionDeleteCluster Action = "deleteCluster"
	// ActionRemoveFinalizer takes Finalizer off.
	ActionRemoveFinalizer Action = "removeFinalizer"
)

const (
	// progressPeriod is how often something that runs is looked at.
	progressPeriod = 5 * time.Second
	// waitPeriod is how often it is looked whether what is waited for has come.
	waitPeriod = 5 * time.Second
	// createGrace is how long a cluster that does not exist is waited for: manifests are applied one after the other,
	// a fraction of a second apart. The wait is a part of every restore without spec.clusterTemplate that makes a cluster.
	createGrace = 3 * time.Second
)

// Plan is what the controller does about an EtcdRestore, and what the status reports.
type Plan struct {
	Action Action
	// Check is the Job of ActionVerify.
	Check *resources.RestoreCheck
	// Cluster is made by ActionCreateCluster.
	Cluster *v1beta2.EtcdCluster
	// Copy is the EtcdBackup of ActionBackUpFirst, and Copied the pre-restore backup that it made.
	Copy   *v1beta2.EtcdBackup
	Copied *v1beta2.PreRestoreBackup
	// Recovery is what ActionRequestRecovery asks for, and Restores what the cluster then tells of its restores.
	Recovery *v1beta2.RecoveryStatus
	Restores []v1beta2.ClusterRestore
	// Record is how the restore has ended.
	Record *Record
	// Rejected is why the cluster must abandon the recovery. The status records it first.
	Rejected *Wait
	// Phase that the restore is in.
	Phase v1beta2.RestorePhase
	// Delete lists Jobs that have served their purpose.
	Delete []string
	// Wait is what is waited for; nil if nothing is.
	Wait *Wait
	// Progress of the transfer that runs, and the revision that was found; 0 if it is
	// not known.
	Progress *v1beta2.TransferProgress
	Revision int64
	// RequeueAfter is when to look again if nothing happens before; 0: not at all.
	RequeueAfter time.Duration
}

// Record is how a restore has ended.
type Record struct {
	Succeeded bool
	// Reason in one CamelCase word.
	Reason string
	// Message for a reader.
	Message string
}

// rules in the order in which Decide calls them; the first that returns a plan decides. No rule
// below ruleFollow runs while the cluster carries the request out.
var rules = []func(*Observed) (Plan, bool){
	// Cancels the recovery of a restore that is being deleted, then removes the finalizer.
	ruleCancelled,
	// Deletes the Jobs of a restore that has ended, but the newest that failed.
	ruleEnded,
	// Reports the progress and the outcome of the recovery that was requested.
	ruleFollow,
	// Ends a restore whose request the cluster no longer has.
	ruleLost,
	// Ends or holds an automatic restore whose loss is not proven any more.
	ruleLossEnded,
	// Ends a restore that the cluster has carried out before.
	ruleRepeated,
	// Ends a restore in place that has waited for too long.
	ruleExpired,
	// Has the backup read and checked.
	ruleVerify,
	// Creates the cluster if it does not exist, and adds the finalizer.
	rulePrepare,
	// Backs up the data that the restore replaces.
	rulePreRestoreBackup,
}

// Decide says what to do next. If no rule decides, the restore requests the recovery of the cluster.
func Decide(o Observed) Plan {
	for _, rule := range rules {
		if plan, decided := rule(&o); decided {
			if plan.Action == ActionNone && plan.Wait != nil && plan.RequeueAfter == 0 {
				plan.RequeueAfter = waitPeriod
			}
			return plan
		}
	}
	return requestRecovery(&o)
}

// ruleCancelled ends a restore whose object is deleted. Until the old members are
// decommissioned, the cluster keeps or gets back what it had. Later the recovery goes on to its end.
func ruleCancelled(o *Observed) (Plan, bool) {
	if o.Restore.DeletionTimestamp == nil {
		return Plan{}, false
	}
	r := o.recovery()
	switch {
	case !o.isHeld():
		return Plan{}, true
	case isReversible(r) && !r.Cancelled:
		return Plan{Action: ActionCancelRecovery}, true
	case isReversible(r):
		return Plan{RequeueAfter: waitPeriod, Wait: o.blockedOr(nil)}, true
	case o.isMade() && !o.isServed() && !r.IsInProgress() && o.Cluster.DeletionTimestamp == nil:
		return Plan{Action: ActionDeleteCluster}, true
	default:
		return Plan{Action: ActionRemoveFinalizer}, true
	}
}

// isReversible is true while the recovery has touched nothing that was there before.
func isReversible(r *v1beta2.RecoveryStatus) bool {
	return r != nil && (r.Phase == v1beta2.RecoveryPhasePending || r.Phase == v1beta2.RecoveryPhaseFilling)
}

// ruleEnded cleans up after a restore that has ended. The newest Job that failed stays, so that
// a user can read its log.
func ruleEnded(o *Observed) (Plan, bool) {
	if !o.hasEnded() {
		return Plan{}, false
	}
	plan := Plan{Phase: o.Restore.Status.Phase}
	newest := o.newest()
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if kept := j.Name == newest.Name && j.Outcome != nil && !j.Outcome.Succeeded; !kept && !j.Deleting {
			plan.Delete = append(plan.Delete, j.Name)
		}
	}
	if o.isHeld() {
		plan.Action = ActionRemoveFinalizer
	}
	return plan, true
}

// ruleFollow reports the progress and the outcome of the recovery that was requested.
func ruleFollow(o *Observed) (Plan, bool) {
	r := o.recovery()
	if r == nil {
		return Plan{}, false
	}
	plan := Plan{Phase: v1beta2.RestorePhaseRestoring, Delete: o.everyJob(), RequeueAfter: progressPeriod}
	if j := o.newest(); j != nil && j.Outcome != nil && o.Restore.Status.Revision != j.Outcome.Revision {
		// The status records what the Job has found before the Job is deleted.
		plan.Revision, plan.Delete = j.Outcome.Revision, nil
	}
	if o.isAskedForBackup(r) {
		if next, decides := o.backUp(plan); decides {
			return next, true
		}
	}
	switch r.Phase {
	case v1beta2.RecoveryPhaseSucceeded:
		// With a message, the new members were lost before they committed a write.
		if r.Message != "" {
			plan.Record = &Record{Reason: ReasonNotProved, Message: r.Message}
		} else {
			plan.Record = &Record{Succeeded: true, Reason: ReasonRestored, Message: "the cluster has committed a write with the restored data"}
		}
	case v1beta2.RecoveryPhaseAbandoned:
		plan.Record = o.rejection()
		if plan.Record == nil {
			plan.Record = &Record{Reason: ReasonAbandoned, Message: "the cluster was left as it was: " + r.Message}
		}
	case v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryPhaseCleaning:
		plan.Phase = v1beta2.RestorePhaseStarting
		plan.Wait = o.blockedOr(cmp.Or(o.failingAgain(r), &Wait{Reason: string(r.Phase), Message: "the cluster cuts over to the restored data" + job.WithCause(r.Message)}))
	default:
		return o.awaitFilled(plan, r), true
	}
	if plan.Record != nil {
		plan.Delete, plan.RequeueAfter = nil, 0
	}
	return plan, true
}

// failingAgain is why a recovery member does not start in the cutover; nil if it does. One that has lost its data is filled
// again, and a backup that cannot be read any more keeps the cluster there until the EtcdRestore is deleted.
func (o *Observed) failingAgain(r *v1beta2.RecoveryStatus) *Wait {
	if o.RecoveryMember == nil || r.Phase != v1beta2.RecoveryPhaseCutover {
		return nil
	}
	why := cmp.Or(o.RecoveryMember.Rejected, o.RecoveryMember.Failing)
	if why == nil || o.RecoveryMember.Revision > 0 || !o.RecoveryMember.Fills {
		return why
	}
	end := ""
	if !o.RecoveryMember.FailsToFill {
		end = " if an old member has its pod or its PVC" // otherwise the pod may fill all that the cluster has
	}
	return &Wait{Reason: why.Reason, Message: fmt.Sprintf("%s; if the recovery member cannot be filled again, delete EtcdRestore %s, which abandons the restore%s",
		strings.TrimRight(why.Message, ". "), o.Restore.Name, end)}
}

// awaitFilled waits for the new bootstrap member, and cancels a recovery that cannot succeed.
func (o *Observed) awaitFilled(plan Plan, r *v1beta2.RecoveryStatus) Plan {
	rejected := o.rejection()
	switch {
	case rejected != nil && !r.Cancelled:
		plan.Action = ActionCancelRecovery
	case rejected == nil && o.RecoveryMember != nil && o.RecoveryMember.Rejected != nil && !r.Cancelled:
		plan.Rejected = o.RecoveryMember.Rejected
		return plan
	}
	plan.Wait = o.blockedOr(o.filling(r))
	if o.RecoveryMember == nil {
		return plan
	}
	if o.RecoveryMember.Failing != nil {
		plan.Wait = o.RecoveryMember.Failing
	}
	if o.RecoveryMember.Revision > 0 {
		plan.Phase, plan.Revision = v1beta2.RestorePhaseStarting, o.RecoveryMember.Revision-r.RevisionBump
	}
	return plan
}

// rejection is what the status recorded before the recovery was cancelled because of it.
func (o *Observed) rejection() *Record {
	for i := range o.Restore.Status.Conditions {
		if c := &o.Restore.Status.Conditions[i]; c.Type == ConditionSucceeded && c.Status == metav1.ConditionFalse {
			return &Record{Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}

func (o *Observed) everyJob() []string {
	var names []string
	for i := range o.Jobs {
		if j := &o.Jobs[i]; !j.Deleting {
			names = append(names, j.Name)
		}
	}
	return names
}

// lostGrace is how long the status of the cluster may not show the request before that counts as lost. The record of the
// cluster has it, too, and the controller reports from there. The phase Failed is for ever, and the recovery would go on.
const lostGrace = 2 * time.Minute

// ruleLost ends a restore whose request no longer exists, so that its outcome is unknown. If the cluster waits for this
// restore, its record has the request and not the backup, and nothing was replaced yet: the restore asks again.
func ruleLost(o *Observed) (Plan, bool) {
	if !o.isRequested() {
		return Plan{}, false
	}
	gone := o.Cluster == nil || o.Cluster.DeletionTimestamp != nil
	if !gone && o.Cluster.Status.BlockedBy != nil && o.Cluster.Status.BlockedBy.Reason == v1beta2.ReasonWaitingForRestore {
		return Plan{}, false
	}
	if left := o.untilLost(); !gone && left > 0 {
		return Plan{Phase: o.Restore.Status.Phase, RequeueAfter: min(left, waitPeriod), Wait: &Wait{Reason: ReasonRecoveryNotReported, Message: fmt.Sprintf(
			"the status of EtcdCluster %s does not show the recovery; if it still does not in %s, its outcome is unknown", o.Cluster.Name, lostGrace)}}, true
	}
	record := &Record{Reason: ReasonRecoveryLost, Message: "the status of the EtcdCluster no longer holds the request of this restore; check the data of the cluster before another restore"}
	if gone {
		record = &Record{Reason: ReasonClusterDeleted, Message: fmt.Sprintf("EtcdCluster %s was deleted during the restore", o.Restore.Spec.EtcdCluster.Name)}
	}
	return Plan{Phase: o.Restore.Status.Phase, Record: record}, true
}

// untilLost is how much longer the request may be missing. The condition Progressing is Unknown since it is.
func (o *Observed) untilLost() time.Duration {
	c := meta.FindStatusCondition(o.Restore.Status.Conditions, ConditionProgressing)
	if c == nil || c.Status != metav1.ConditionUnknown {
		return lostGrace
	}
	return min(c.LastTransitionTime.Add(lostGrace).Sub(o.Now), lostGrace)
}

func (p Plan) failed(reason, message string) Plan {
	p.Record = &Record{Reason: reason, Message: message}
	return p
}

// Postponed returns the plan without its action, because Kubernetes does not let the
// controller create the object.
func (p Plan) Postponed(why Wait) Plan {
	p.Action, p.Wait, p.RequeueAfter = ActionNone, &why, waitPeriod
	return p
}

// rulePrepare creates the cluster if it does not exist, and adds the finalizer that cancels the
// recovery if the restore is deleted.
func rulePrepare(o *Observed) (Plan, bool) {
	found := o.newest().Outcome
	plan := Plan{Phase: v1beta2.RestorePhaseVerifying, Revision: found.Revision}
	if !o.isHeld() {
		plan.Action = ActionAddFinalizer
		return plan, true
	}
	if o.Cluster != nil {
		plan.Wait = o.obstacle()
		return plan, plan.Wait != nil
	}
	if o.Restore.Spec.ClusterTemplate == nil {
		if left := o.Restore.CreationTimestamp.Add(createGrace).Sub(o.Now); left > 0 && left <= createGrace {
			plan.Wait, plan.RequeueAfter = &Wait{Reason: ReasonClusterNotFound, Message: fmt.Sprintf(
				"EtcdCluster %s does not exist; if it is still missing in a few seconds, it is created with %d members", o.Restore.Spec.EtcdCluster.Name, defaultSize)},
				left
			return plan, true
		}
	}
	if o.Restore.Spec.ClusterTemplate == nil && strings.TrimSpace(found.EtcdVersion) == "" {
		plan.Wait = &Wait{Reason: ReasonClusterNotFound, Message: fmt.Sprintf(
			"EtcdCluster %s does not exist, and the backup does not say which version of etcd it is of: create the cluster, or give spec.clusterTemplate in another EtcdRestore",
			o.Restore.Spec.EtcdCluster.Name)}

		return plan, true
	}
	plan.Action, plan.Cluster = ActionCreateCluster, o.newCluster(found)
	return plan, true
}
