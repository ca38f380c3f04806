// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleHibernate takes the pods of a cluster of size 0 away. Members and volumes
// stay. It needs no quorum: nothing is lost that is on a volume, and a member
// without one is never touched.
func ruleHibernate(o *Observed) (Plan, bool) {
	if o.size() != 0 {
		return Plan{}, false
	}
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Owned && !p.Terminating && o.claim(p.Name) != nil {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Hibernate: true})
		}
	}
	return Plan{Actions: actions}, true
}

// ruleReturn brings back the pods of members whose data is on a volume. It changes
// no membership, so it needs no quorum: it is how a quorum comes back.
func ruleReturn(o *Observed) (Plan, bool) {
	var actions []Action
	for i := range o.Claims {
		c := &o.Claims[i]
		if o.claim(c.Name) == nil || (o.Etcd.Linearizable && o.member(c.Name) == nil) {
			continue // released, going away, or no longer a member: not ours to start
		}
		switch p := o.pod(c.Name); {
		case o.prepared(c.Name) != nil: // it is admitted, or deleted first
		case p == nil:
			actions = append(actions, o.comeBack(c.Name))
		case p.Finished && !p.Terminating:
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; o.stranded(p) {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Stranded: true})
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}

// stranded is true for a pod that waits for a volume which somebody has deleted. It
// will never run, and a member without pod and volume is replaced.
func (o *Observed) stranded(p *Pod) bool {
	return o.persistent() && p.Owned && !p.gone() && !p.Running &&
		!slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Name == p.Name })
}

// comeBack makes the pod of a member that has a volume. It comes back as what it
// was: bringing members to another version is for rule version.
func (o *Observed) comeBack(name string) CreatePod {
	pod := CreatePod{Name: name, Peers: o.peerNames(), Version: o.joinVersion()}
	m := o.member(name)
	if m != nil {
		pod.Learner, pod.Joined = m.Learner, m.Started && !m.Learner
	}
	if c := o.claim(name); c != nil && parse(c.Version) != nil {
		pod.Version = o.pinned(parse(c.Version))
	} else if m != nil && o.runs(m) != nil {
		pod.Version = o.pinned(o.runs(m))
	}
	if !slices.Contains(pod.Peers, name) {
		// The last status did not know it. Without its own name it could not start.
		pod.Peers = append(pod.Peers, name)
	}
	return pod
}

// peerNames lists all members, for the command line of a member that starts.
func (o *Observed) peerNames() []string {
	var names []string
	for i := range o.Etcd.Members {
		names = append(names, o.Etcd.Members[i].Name)
	}
	if len(names) > 0 {
		return names
	}
	for i := range o.Claims {
		if o.claim(o.Claims[i].Name) != nil {
			names = append(names, o.Claims[i].Name)
		}
	}
	return names
}

// ruleQuorum stops here while no member list can be read through a quorum: what is
// not known is not acted upon.
func ruleQuorum(o *Observed) (Plan, bool) {
	if o.Etcd.Linearizable {
		return Plan{}, false
	}
	loss := o.quorumLoss()
	plan := wait(recheckQuorum, loss.reason, loss.message, loss.unblock)
	if loss.forGood {
		// Before a person takes a backup for it: are they really gone?
		plan.RequeueAfter = o.untilRecovery()
		plan.Actions = o.findLost()
	}
	return plan, true
}

// findLost looks for the voters that seem to be gone with their data; if none is
// known, for the first one.
func (o *Observed) findLost() []Action {
	var actions []Action
	for _, m := range o.voters() {
		if o.pod(m.Name) == nil && o.claim(m.Name) == nil {
			actions = append(actions, FindMember{Name: m.Name})
		}
	}
	if len(o.Etcd.Members) == 0 && o.PeerService.Seed != "" {
		actions = append(actions, FindMember{Name: o.PeerService.Seed})
	}
	return actions
}

// quorumLoss is what is known of a quorum that could not be reached.
type quorumLoss struct {
	// lost is True if it is lost for sure and Unknown if that cannot be said.
	lost corev1.ConditionStatus
	// forGood is true if nothing that is there can bring the quorum back.
	forGood                  bool
	reason, message, unblock string
}

func (o *Observed) quorumLoss() quorumLoss {
	electorate := o.electorate()
	voters, hopeless, down := len(electorate), 0, 0
	for _, m := range electorate {
		switch pod := o.pod(m.Name); {
		case pod.ended() && o.claim(m.Name) == nil:
			hopeless++
		case pod.gone(), !pod.Running:
			down++
		case m.Health != Healthy && (!pod.Ready || m.Reason == ReasonNoLeader):
			down++
		}
	}
	need := quorum(voters)
	switch {
	case voters == 0 && len(o.remains()) == 0:
		return quorumLoss{corev1.ConditionTrue, true, "QuorumLost",
			"no pod and no volume of any member is left",
			o.howToRestore()}
	case voters == 0 && !slices.ContainsFunc(o.Pods, func(p Pod) bool { return p.Owned && p.Ready }):
		return quorumLoss{corev1.ConditionTrue, false, "QuorumLost",
			"no member of etcd is known, and no pod serves clients" + because(o.Etcd.Err),
			"the cluster resumes as soon as enough members come back; if they are gone, restore a backup with an EtcdRestore"}
	case voters == 0:
		return quorumLoss{corev1.ConditionUnknown, false, "EtcdUnreachable",
			"no member of etcd is known" + because(o.Etcd.Err), "nothing, unless it lasts"}
	case voters-hopeless < need:
		return o.lostForGood(hopeless, voters)
	case voters-hopeless-down < need:
		return quorumLoss{corev1.ConditionTrue, false, "QuorumLost",
			fmt.Sprintf("%d of %d voters do not serve, %d are needed", hopeless+down, voters, need) + o.whoDecides() + o.whoMayRun(),
			"the cluster resumes untouched as soon as enough members come back; if they never will: " + o.howToRecover(false) + o.howToProve()}
	case o.Etcd.Denied:
		return quorumLoss{corev1.ConditionUnknown, false, "EtcdDenied",
			"the members' pods run and etcd refuses to tell the controller anything" + because(o.Etcd.Err), UnblockDenied}
	default:
		return quorumLoss{corev1.ConditionUnknown, false, "EtcdUnreachable",
			"the members' pods run and etcd does not answer the controller" + because(o.Etcd.Err),
			"check the network between the controller and the pods"}
	}
}

// lostForGood is a quorum that was lost for good, unless a member that answers knows of
// one that can come back.
func (o *Observed) lostForGood(hopeless, voters int) quorumLoss {
	message := fmt.Sprintf("%d of %d voters are gone with their data, %d are needed", hopeless, voters, quorum(voters))
	doubts := o.doubts()
	if doubts == "" {
		return quorumLoss{corev1.ConditionTrue, true, "QuorumLost", message, o.howToRecover(true)}
	}
	return quorumLoss{corev1.ConditionTrue, false, "QuorumLost", message + "; but " + doubts,
		"the cluster resumes untouched as soon as enough members come back; if they never will: " + o.howToRecover(false)}
}

// whoDecides names the members whose silence is all that keeps a loss from being proved.
func (o *Observed) whoDecides() string {
	undecided := o.undecided()
	if len(undecided) == 0 {
		return ""
	}
	text := ""
	for _, m := range undecided {
		text += "; that it is for good is not proved before " + m.Name + ", which may vote by now, answers or is gone with its data" + waitingFor(o.pod(m.Name))
	}
	return text
}

// whoMayRun names the pods whose end is all that is missing for a proof, and their nodes.
func (o *Observed) whoMayRun() string {
	text := ""
	for _, p := range o.unproved() {
		text += "; " + p.mayRun()
	}
	return text
}

// howToProve says what would supply the missing evidence.
func (o *Observed) howToProve() string {
	if len(o.unproved()) == 0 {
		return ""
	}
	return ". " + confirmOff
}

// UnblockDenied says what lets the controller in where etcd's own authorization is on.
const UnblockDenied = "etcd's own authorization lets the controller act only as its user root: with a client certificate of that common name, which spec.TLS.auto gives it; without certificates it must be off (etcdctl auth disable)"

// whoSurvives lists the members that answer and how far each of them has come.
func (o *Observed) whoSurvives() string {
	list := make([]string, 0, len(o.Etcd.Members))
	for _, m := range o.survivors() {
		list = append(list, fmt.Sprintf("%s (raft index %d)", m.Name, m.RaftIndex))
	}
	if len(list) == 0 {
		return "; none answers"
	}
	return "; " + strings.Join(list, ", ") + " survive"
}

// howToRecover says what a person can do about a lost quorum. Only a loss for good is
// answered by itself.
func (o *Observed) howToRecover(forGood bool) string {
	if o.source("") == nil {
		if b := o.Cluster.Status.LastBackup; forGood && o.recoversByItself() && resources.Restorable(b) == nil && len(o.remains()) == 0 {
			return fmt.Sprintf("nothing: after %v the last backup, EtcdBackup %s, is restored", recoveryGrace, b.Name)
		}
		return o.howToRestore()
	}
	if forGood && o.recoversByItself() {
		return fmt.Sprintf("nothing: after %v it goes on from the member that has lost the least", recoveryGrace)
	}
	return "create etcdclusters/" + o.Cluster.Name + "/recover to go on from the member that has lost the least (dryRun=All shows the plan), or restore a backup with an EtcdRestore"
}

// howToRestore says what a person can do where no member answers. Where a pod or a volume
// is left that may come back, nothing is offered to be typed without a thought.
func (o *Observed) howToRestore() string {
	b := o.Cluster.Status.LastBackup
	if resources.Restorable(b) != nil || len(o.remains()) > 0 {
		return "restore a backup with an EtcdRestore"
	}
	return "create etcdclusters/" + o.Cluster.Name + "/restore to restore the last backup, EtcdBackup " + b.Name +
		" (dryRun=All shows what it would be), or restore another one with an EtcdRestore"
}

func because(err string) string {
	if err == "" {
		return ""
	}
	return ": " + err
}

// ruleClusterID refuses to touch members of an etcd that is not this cluster.
func ruleClusterID(o *Observed) (Plan, bool) {
	id := o.PeerService.ClusterID
	if id == "" || id == unknownClusterID || id == strconv.FormatUint(o.Etcd.ClusterID, 16) {
		return Plan{}, false
	}
	return wait(recheckWaiting, "ClusterIDMismatch",
		fmt.Sprintf("the members answer with cluster ID %x and this cluster has %s", o.Etcd.ClusterID, id),
		"find out which process answers under the members' addresses"), true
}

// ruleStrangers leaves a cluster alone that somebody else has added a member to: its
// place in the quorum is not understood.
func ruleStrangers(o *Observed) (Plan, bool) {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Stranger {
			return wait(recheckWaiting, "UnknownMember",
				fmt.Sprintf("member %s (%s) was not added by this controller", m.id(), m.Name),
				"remove it with etcdctl member remove "+m.id()), true
		}
	}
	return Plan{}, false
}
