// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

const (
	// stalledSoon is how long the controller waits for a person, or for something that
	// only another program changes, before the cluster is Stalled. Objects that a deleted
	// cluster with the same name leaves behind no longer exist after that time.
	stalledSoon = time.Minute
	// stalledLate is how long it waits for what should come by itself, such as a pod that
	// starts. It is the default of a Deployment's progressDeadlineSeconds.
	stalledLate = 10 * time.Minute
	// readyHold is how long a cluster that was Ready stays so while nothing but responses of
	// etcd are missing, as they are during an election.
	readyHold = 10 * time.Second
)

// needsPerson lists the reasons of waits that end only when a person or another program
// changes something.
var needsPerson = map[Reason]bool{
	ReasonNameConflict: true, ReasonOldPods: true, ReasonClusterIDMismatch: true, ReasonUnmanagedMember: true,
	ReasonVersionStep: true, v1beta2.ReasonPodRejected: true, ReasonPodFailed: true, ReasonForbidden: true, ReasonEtcdDenied: true,
	ReasonNoBackup: true, ReasonBackupNotVerified: true, ReasonRestoreEnded: true, ReasonSourceLost: true,
	certificates.ReasonSecretMissing: true, certificates.ReasonSecretIncomplete: true,
	certificates.ReasonCertificateUnusable: true, certificates.ReasonCertificateExpired: true,
}

// transfersData lists the reasons of waits for data, which take as long as there is data.
var transfersData = map[Reason]bool{ReasonLearnerCatchingUp: true, ReasonPreparingLog: true, ReasonWaitingForRestore: true}

// standing is what the conditions Ready, Reconciling and Stalled say; exactly one of
// ready, stalled and neither holds.
type standing struct {
	ready, stalled bool
	reason         Reason
	message        string
}

// conditions returns the three. Reconciling and Stalled have no status, and are not there,
// while they are not True, as kstatus wants.
func (s standing) conditions() []v1beta2.ClusterCondition {
	whileTrue := func(t v1beta2.ClusterConditionType, holds bool) v1beta2.ClusterCondition {
		if !holds {
			return v1beta2.ClusterCondition{Type: t}
		}
		return is(t, corev1.ConditionTrue, s.reason, s.message)
	}
	ready := is(v1beta2.ClusterConditionReady, corev1.ConditionFalse, s.reason, s.message)
	if s.ready {
		ready.Status = corev1.ConditionTrue
	}
	return []v1beta2.ClusterCondition{
		ready,
		whileTrue(v1beta2.ClusterConditionReconciling, !s.ready && !s.stalled),
		whileTrue(v1beta2.ClusterConditionStalled, s.stalled),
	}
}

// standing says whether the cluster is as declared. If not, it says whether the controller
// works on that or waits for a user.
func (o *Observed) standing(plan Plan) standing {
	unmet := o.unmet(plan)
	switch {
	case unmet == nil && o.size() == 0:
		return standing{ready: true, reason: ReasonHibernated, message: "spec.size is 0 and no pod is left"}
	case unmet == nil:
		return standing{ready: true, reason: ReasonAsDeclared, message: diagnosis.Count(o.size(), "voter") + " of etcd " + o.Cluster.Spec.Version + " are healthy"}
	case o.holdsReady(plan):
		return standing{ready: true, reason: ReasonAsDeclared, message: o.condition(v1beta2.ClusterConditionReady).Message}
	case o.Cluster.Spec.Paused:
		return standing{stalled: true, reason: ReasonPaused, message: "spec.paused is true and the cluster is not as declared: " + unmet.message + ". Set spec.paused=false."}
	case plan.Wait != nil:
		return standing{stalled: o.waitsTooLong(plan), reason: plan.Wait.Reason, message: plan.Wait.Message}
	default:
		return *unmet
	}
}

// unmet returns what the cluster lacks of its declaration; nil if that is nothing.
func (o *Observed) unmet(plan Plan) *standing {
	if o.size() == 0 {
		return o.unmetAsleep(plan)
	}
	if plan.Wait != nil && plan.Rule != RuleOperation {
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	}
	if p := progressing(o, plan); p.Status == corev1.ConditionTrue && plan.Rule != RuleOperation {
		return &standing{reason: Reason(p.Reason), message: cmp.Or(p.Message, "the controller brings the cluster to its declaration")}
	}
	if a := available(o, plan); a.Status != corev1.ConditionTrue {
		return &standing{stalled: a.Reason == string(ReasonDataCorrupt), reason: Reason(a.Reason), message: a.Message}
	}
	if s := scaling(o, plan); s.Status == corev1.ConditionTrue || len(o.Etcd.Members) != o.size() {
		return &standing{reason: ReasonMembersDiffer, message: sizes(len(o.voters()), o.size())}
	}
	if lacking := o.lacking(); len(lacking) > 0 {
		return &standing{reason: ReasonMembersUnhealthy, message: "members that are not healthy and as declared: " + strings.Join(lacking, ", ")}
	}
	for _, c := range []v1beta2.ClusterCondition{volumesAsDeclared(o, plan), serviceAsDeclared(o, plan), clientsAsDeclared(o, plan)} {
		if c.Status == corev1.ConditionFalse {
			reason := Reason(c.Reason)
			rejected := reason != ReasonGrowing && reason != ReasonMissing && reason != certificates.ReasonIssuing && reason != ReasonRemovingClient
			return &standing{stalled: rejected && o.lastedFor(c) >= stalledSoon, reason: Reason(c.Type), message: c.Message}
		}
	}
	return nil
}

// unmetAsleep is about a cluster that is to have no members.
func (o *Observed) unmetAsleep(plan Plan) *standing {
	switch {
	case plan.Wait != nil && plan.Wait.Reason != ReasonDesiredSizeZero:
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	case len(o.Pods) > 0:
		return &standing{reason: ReasonHibernating, message: diagnosis.Count(len(o.Pods), "pod") + " still exist"}
	default:
		return nil
	}
}

// lacking says of each voter that is not healthy, or not as declared, what it lacks.
func (o *Observed) lacking() []string {
	var lacking []string
	target := parse(o.Cluster.Spec.Version)
	for _, m := range o.voters() {
		pod := o.pod(m.Name)
		switch {
		case pod.gone():
			lacking = append(lacking, m.Name+" (no pod)")
		case m.Health != Healthy:
			lacking = append(lacking, m.Name+" (not healthy)")
		case !pod.Ready:
			lacking = append(lacking, m.Name+" (pod not ready)")
		case o.due(m) != asDeclared:
			lacking = append(lacking, m.Name+" (pod not as declared)")
		case target != nil && m.Version != "" && !sameVersion(m.Version, target):
			lacking = append(lacking, fmt.Sprintf("%s (runs etcd %s)", m.Name, m.Version))
		}
	}
	return lacking
}

// holdsReady is true while a cluster that was Ready at this generation lacks nothing but
// responses of etcd, and only for a moment. Users and programs that wait for the cluster
// need not see a change of leader.
func (o *Observed) holdsReady(plan Plan) bool {
	was := o.condition(v1beta2.ClusterConditionReady)
	if was.Status != corev1.ConditionTrue || was.ObservedGeneration != o.Cluster.Generation || was.Reason != string(ReasonAsDeclared) {
		return false
	}
	switch plan.Rule {
	case RuleQuorum, RuleOperation, RuleSteady, RulePaused:
	default:
		return false
	}
	voters := o.voters()
	if len(voters) != o.size() || len(voters) != len(o.Etcd.Members) || o.corrupt() != nil {
		return false
	}
	for _, m := range voters {
		if pod := o.pod(m.Name); pod.gone() || !pod.Running || !pod.Ready || o.due(m) != asDeclared {
			return false
		}
	}
	before := o.condition(v1beta2.ClusterConditionDegraded)
	return before.Status == corev1.ConditionFalse || o.since(before) < readyHold
}

// waitsTooLong is true once the plan has waited for the same thing for so long that it
// will probably not come without a person.
func (o *Observed) waitsTooLong(plan Plan) bool {
	waited := o.Now.Sub(blockedBy(o, plan).Since.Time)
	switch reason := plan.Wait.Reason; {
	case transfersData[reason], plan.Rule == RuleRecovery && !needsPerson[reason]:
		return false
	case needsPerson[reason], plan.Rule == RuleQuorum && o.quorumLoss().Permanent && !o.recoversByItself():
		return waited >= stalledSoon
	default:
		return waited >= stalledLate
	}
}

// condition returns what the last status said; the zero value if it said nothing.
func (o *Observed) condition(t v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range o.Cluster.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}

// since is how long a condition of the last status has had its status; 0 if that is not
// known.
func (o *Observed) since(c v1beta2.ClusterCondition) time.Duration {
	at, err := time.Parse(time.RFC3339, c.LastTransitionTime)
	if err != nil {
		return 0
	}
	return o.Now.Sub(at)
}

// lastedFor is how long c has been what it is now.
func (o *Observed) lastedFor(c v1beta2.ClusterCondition) time.Duration {
	if before := o.condition(c.Type); before.Status == c.Status {
		return o.since(before)
	}
	return 0
}
