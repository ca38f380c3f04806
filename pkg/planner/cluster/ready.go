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
)

const (
	// stalledSoon is how long the controller waits for a person, or for something that
	// only another program changes, before the cluster is Stalled. What a deleted cluster
	// of the same name leaves behind is gone within that time.
	stalledSoon = time.Minute
	// stalledLate is how long it waits for what should come by itself, such as a pod that
	// starts. It is the default of a Deployment's progressDeadlineSeconds.
	stalledLate = 10 * time.Minute
	// readyHold is how long a cluster that was Ready stays so while nothing but etcd's own
	// answers are missing, as they are during an election.
	readyHold = 10 * time.Second
)

// needsPerson lists the reasons of waits that end only when a person or another program
// changes something.
var needsPerson = map[string]bool{
	"NameTaken": true, "OldPods": true, "SeedUnknown": true, "ClusterIDMismatch": true, "UnknownMember": true,
	"VersionStep": true, v1beta2.ReasonPodRefused: true, "PodFailed": true, "Forbidden": true, "EtcdDenied": true,
	"NoBackup": true, "BackupNotVerified": true, "SourceLost": true,
	"SecretMissing": true, "SecretIncomplete": true, "CertificateUnusable": true, "CertificateExpired": true,
}

// transfersData lists the reasons of waits for data, which take as long as there is data.
var transfersData = map[string]bool{"LearnerCatchingUp": true, "PreparingLog": true, "WaitingForRestore": true}

// standing is what the conditions Ready, Reconciling and Stalled say; exactly one of
// ready, stalled and neither holds.
type standing struct {
	ready, stalled  bool
	reason, message string
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

// standing says whether the cluster is as declared, and if not, whether the controller
// brings it there or waits for somebody.
func (o *Observed) standing(plan Plan) standing {
	unmet := o.unmet(plan)
	switch {
	case unmet == nil && o.size() == 0:
		return standing{ready: true, reason: "Hibernated", message: "spec.size is 0 and no pod is left"}
	case unmet == nil:
		return standing{ready: true, reason: "AsDeclared", message: count(o.size(), "voter") + " of etcd " + o.Cluster.Spec.Version + " are healthy"}
	case o.holdsReady(plan):
		return standing{ready: true, reason: "AsDeclared", message: o.condition(v1beta2.ClusterConditionReady).Message}
	case o.Cluster.Spec.Paused:
		return standing{stalled: true, reason: "Paused", message: "spec.paused is true and the cluster is not as declared: " + unmet.message + ". Set spec.paused=false."}
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
	if plan.Wait != nil && plan.Rule != "operation" {
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	}
	if p := progressing(o, plan); p.Status == corev1.ConditionTrue && plan.Rule != "operation" {
		return &standing{reason: p.Reason, message: cmp.Or(p.Message, "the controller brings the cluster to its declaration")}
	}
	if a := available(o, plan); a.Status != corev1.ConditionTrue {
		return &standing{stalled: a.Reason == "DataCorrupt", reason: a.Reason, message: a.Message}
	}
	if s := scaling(o, plan); s.Status == corev1.ConditionTrue || len(o.Etcd.Members) != o.size() {
		return &standing{reason: "MembersDiffer", message: sizes(len(o.voters()), o.size())}
	}
	if lacking := o.lacking(); len(lacking) > 0 {
		return &standing{reason: "MembersUnhealthy", message: "members that are not healthy and as declared: " + strings.Join(lacking, ", ")}
	}
	for _, c := range []v1beta2.ClusterCondition{volumesAsDeclared(o, plan), serviceAsDeclared(o, plan)} {
		if c.Status == corev1.ConditionFalse {
			refused := c.Reason != "Growing" && c.Reason != "Missing"
			return &standing{stalled: refused && o.lastedFor(c) >= stalledSoon, reason: string(c.Type), message: c.Message}
		}
	}
	return nil
}

// unmetAsleep is about a cluster that is to have no members.
func (o *Observed) unmetAsleep(plan Plan) *standing {
	switch {
	case plan.Wait != nil && plan.Wait.Reason != "NoMembersWanted":
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	case len(o.Pods) > 0:
		return &standing{reason: "Hibernating", message: count(len(o.Pods), "pod") + " still exist"}
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
// answers of etcd, and has lacked them for a moment only: a change of leader is no reason
// to tell everybody who waits for the cluster that it is not ready.
func (o *Observed) holdsReady(plan Plan) bool {
	was := o.condition(v1beta2.ClusterConditionReady)
	if was.Status != corev1.ConditionTrue || was.ObservedGeneration != o.Cluster.Generation || was.Reason != "AsDeclared" {
		return false
	}
	switch plan.Rule {
	case "quorum", "operation", "steady", "paused":
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
	case transfersData[reason], plan.Rule == "recovery" && !needsPerson[reason]:
		return false
	case needsPerson[reason], plan.Rule == "quorum" && o.quorumLoss().forGood && !o.recoversByItself():
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
