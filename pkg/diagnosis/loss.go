// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A permanent quorum loss is proven by two independent sources. The last status says which
// members voted; a member that may have been promoted since, and that may come back, counts
// as one that may come back. And each member that responds says by which member list it
// would stand for election: by none of these lists may a quorum come back.
//
// The last status may also name members that were removed from etcd since. The controller crashed right
// after the removal, the reply was lost, or the API was restored from a backup of its own. Such a member
// leaves no pod and no PVC, as a lost one does. If a member that responds has a list, that
// list decides. If none does, the others may serve without the members that no longer exist. Then the
// proof needs evidence that they do not: see survivorsMayServe in unseen.go.

// Reasons of a quorum that could not be read.
const (
	// ReasonQuorumLost: it is certain that fewer voters serve than a quorum needs.
	ReasonQuorumLost = "QuorumLost"
	// ReasonEtcdUnreachable: the pods run, and no quorum responds. It may still serve clients.
	ReasonEtcdUnreachable = "EtcdUnreachable"
	// ReasonNoLeader: enough voters for a quorum respond, and know no leader yet.
	ReasonNoLeader = "NoLeader"
	// ReasonRestoreCutover: a restore is replacing the members.
	ReasonRestoreCutover = "RestoreCutover"
	// ReasonEtcdDenied: etcd's own authorization rejects the controller.
	ReasonEtcdDenied = "EtcdDenied"
	// ReasonMemberListTooLarge: etcd lists more than the controller reads.
	ReasonMemberListTooLarge = "MemberListTooLarge"
)

// ElectionGrace is how long voters that respond may know no leader until the quorum counts as
// lost. With etcd's default election timeout of 1 s, an election ends within a few seconds.
const ElectionGrace = 10 * time.Second

// CutoverGrace is how long a restore may take to replace the members until the quorum counts as lost. The
// recovery member serves already. It takes the time in which Kubernetes publishes it to clients.
const CutoverGrace = 2 * time.Minute

// IncompleteGrace is how long the pods of all PVCs that were taken back run without a quorum until the members
// count as fewer than a quorum. An election takes seconds.
const IncompleteGrace = 2 * time.Minute

// Loss is the diagnosis of a quorum that could not be read.
type Loss struct {
	// Certain is true if the quorum is lost, and false if that is not known.
	Certain bool
	// Permanent is true if no member that exists can bring the quorum back.
	Permanent bool
	// Reason is one word, Message says the same in sentences.
	Reason, Message string
	// Remedy is the kind of action that helps, and Remediation describes it.
	Remedy      Remedy
	Remediation string
}

// Status returns the status of the condition QuorumLost.
func (l Loss) Status() corev1.ConditionStatus {
	if l.Certain {
		return corev1.ConditionTrue
	}
	return corev1.ConditionUnknown
}

// QuorumLoss diagnoses a quorum that could not be read.
func (c *Cluster) QuorumLoss() Loss {
	if c.Cutover && c.UnreadFor < CutoverGrace {
		return Loss{
			Reason: ReasonRestoreCutover, Remedy: RemedyWaitForMembers,
			Message:     "A restore is replacing the members by member " + c.RecoveryMember + ", which has the restored data.",
			Remediation: NoActionYet,
		}
	}
	loss := c.lossByStatus()
	if !loss.Certain || loss.Permanent {
		return loss
	}
	unseen := c.unseenQuorum(c.mayServe)
	if names := c.survivorsMayServe(c.mayServe); unseen == "" && len(names) > 0 {
		unseen = describeSurvivors(names)
	}
	if unseen != "" {
		return Loss{
			Reason: ReasonEtcdUnreachable, Remedy: RemedyCheckNetwork,
			Message: "A quorum may serve: " + unseen + ".",
			Remediation: "Check the nodes of these members, and the network between the controller and their pods. " +
				"A recovery would lose what they acknowledge.",
		}
	}
	return loss
}

// lossByStatus diagnoses a quorum by the members of the last status.
func (c *Cluster) lossByStatus() Loss {
	voters := c.electorate()
	if len(voters) == 0 {
		return c.lossOfUnknownMembers()
	}
	absent, down, leaderless, starting := 0, 0, 0, 0
	for _, m := range voters {
		// An electorate may hold members that have not started. They count as voters.
		switch state := c.stateWith(m, Votes); {
		case state == ProvenAbsent:
			absent++
		case state == NotServing && m.Response == NoLeader:
			leaderless++
		case state.IsDown():
			down++
			if !m.Started && !c.Evidence(m.Name).IsEnding() {
				starting++
			}
		}
	}
	switch need := Quorum(len(voters)); {
	case len(voters)-absent < need:
		return c.lossOfAbsentVoters(absent, len(voters))
	case leaderless > 0 && len(voters)-absent-down >= need && c.UnreadFor < ElectionGrace:
		return Loss{
			Reason: ReasonNoLeader, Remedy: RemedyWaitForMembers,
			Message:     fmt.Sprintf("%d of %d voters respond and know no leader. An election normally takes a few seconds.", leaderless, len(voters)),
			Remediation: NoActionYet,
		}
	case starting > 0 && len(voters)-absent-down+starting >= need && c.UnreadFor < ElectionGrace:
		return Loss{
			Reason: ReasonNoLeader, Remedy: RemedyWaitForMembers,
			Message:     fmt.Sprintf("%d of %d voters were added and have not started yet. That normally takes a few seconds.", starting, len(voters)),
			Remediation: NoActionYet,
		}
	case c.isIncomplete(voters):
		loss := Loss{
			Certain: true, Permanent: true, Reason: ReasonQuorumLost, Remedy: c.remedyOfPermanentLoss(),
			Message: fmt.Sprintf("%s came back, all their pods run, and no quorum has responded for %v. Fewer members than a quorum came back, or they do not reach each other, "+
				"as after a change of the namespace.", Count(len(voters), "PVC"), IncompleteGrace),
		}
		loss.Remediation = "Bring the other PVCs back, if they exist. Otherwise " + c.howToRecover(true) + "."
		return loss
	case len(voters)-absent-down-leaderless < need:
		return Loss{
			Certain: true, Reason: ReasonQuorumLost, Remedy: RemedyWaitForMembers,
			Message:     fmt.Sprintf("%d of %d voters do not serve. A quorum needs %d.", absent+down+leaderless, len(voters), need) + c.lossByList() + c.missingProof() + c.lostNodes(),
			Remediation: c.howToResume(),
		}
	case c.ListTooLarge:
		return c.unreadableList()
	case c.Denied:
		return Loss{
			Reason: ReasonEtcdDenied, Remedy: RemedyGrantAccess,
			Message:     "The members' pods run, and etcd rejects the controller" + because(c.ReadError) + ".",
			Remediation: GrantAccess,
		}
	default:
		return Loss{
			Reason: ReasonEtcdUnreachable, Remedy: RemedyCheckNetwork,
			Message:     "The members' pods run, and etcd does not respond to the controller" + because(c.ReadError) + ".",
			Remediation: "Check the network between the controller and the pods.",
		}
	}
}

// unreadableList is not a loss: a member responds, and its list is not used.
func (c *Cluster) unreadableList() Loss {
	return Loss{
		Reason: ReasonMemberListTooLarge, Remedy: RemedyShrinkList,
		Message: "etcd responds with a member list that the controller does not use" + because(c.ReadError) + ".", Remediation: ShrinkList,
	}
}

// lossOfUnknownMembers is the loss of a cluster without a known member.
func (c *Cluster) lossOfUnknownMembers() Loss {
	switch {
	case c.ListTooLarge:
		return c.unreadableList()
	case c.MayHaveUnmanaged:
		return Loss{
			Reason: ReasonEtcdUnreachable, Remedy: RemedyCheckNetwork,
			Message:     "The etcd that this cluster takes over does not respond to the controller" + because(c.ReadError) + ".",
			Remediation: "Check the network between the controller and that etcd, and the Secret of spec.bootstrap.existing.",
		}
	case len(c.Remains()) == 0:
		return Loss{
			Certain: true, Permanent: true, Reason: ReasonQuorumLost, Remedy: RemedyRestore,
			Message: "No pod and no PVC of any member exists.", Remediation: asSentence(c.howToRestore(true)),
		}
	case !slices.ContainsFunc(c.Pods, func(p Pod) bool { return p.Ready }):
		return Loss{
			Certain: true, Reason: ReasonQuorumLost, Remedy: RemedyWaitForMembers,
			Message:     "No member of etcd is known, and no pod serves clients" + because(c.ReadError) + ".",
			Remediation: resumes + " If they cannot come back, restore a backup with an EtcdRestore.",
		}
	default:
		return Loss{
			Reason: ReasonEtcdUnreachable, Remedy: RemedyWaitForMembers,
			Message: "No member of etcd is known" + because(c.ReadError) + ".", Remediation: NoActionYet,
		}
	}
}

// lossOfAbsentVoters is a permanent loss, unless a member that responds knows of another
// one that may come back.
func (c *Cluster) lossOfAbsentVoters(absent, voters int) Loss {
	loss := Loss{
		Certain: true, Reason: ReasonQuorumLost,
		Message: fmt.Sprintf("%d of %d voters and their data no longer exist. A quorum needs %d.", absent, voters, Quorum(voters)),
	}
	if doubts := c.doubts(); len(doubts) > 0 {
		loss.Remedy, loss.Remediation = RemedyWaitForMembers, c.howToResume()
		loss.Message += " Permanent loss is unconfirmed: " + strings.Join(doubts, "; ") + "."
		return loss
	}
	loss.Permanent, loss.Remedy, loss.Remediation = true, c.remedyOfPermanentLoss(), asSentence(c.howToRecover(true))
	return loss
}

// doubts returns why a loss is not proven to be permanent, although the voters of the last
// status that may come back are no quorum; nil if the proof is complete.
func (c *Cluster) doubts() []string {
	var reasons []string
	for i := range c.Members {
		m := &c.Members[i]
		switch {
		case m.RaftIndex == 0 && m.View == nil, m.View != nil && m.View.Learner, c.Evidence(m.Name).HasEnded():
		case m.View == nil || len(m.View.Members) == 0:
			reasons = append(reasons, "the member list of "+m.Name+" could not be read")
		case c.mayResume(m.View):
			reasons = append(reasons, "by the member list of "+m.Name+" enough voters may come back")
		}
	}
	if unknown := c.unknownVoters(); len(unknown) > 0 {
		reasons = append(reasons, "the last status does not know "+strings.Join(unknown, ", ")+", which may vote and have newer data")
	}
	if names := c.survivorsMayServe(c.mayServeUnreported); len(names) > 0 {
		reasons = append(reasons, describeSurvivors(names))
	}
	return reasons
}

// mayResume is true if the voters of a list that may come back are a quorum of it.
func (c *Cluster) mayResume(v *View) bool {
	voters, left := c.countListed(v)
	return left >= Quorum(voters)
}

// countListed returns how many voters are in a list, and how many of these may come back.
func (c *Cluster) countListed(v *View) (voters, left int) {
	for i := range v.Members {
		m := &v.Members[i]
		if m.Learner {
			continue
		}
		voters++
		if m.Unmanaged || c.MayComeBack(m.Name) {
			left++
		}
	}
	return voters, left
}

// lossByList names a member by whose list too few voters may come back, although the last status
// does not say so; empty if there is none. It tells a person that a recovery is the only way, as after
// the API was restored from a backup of its own.
func (c *Cluster) lossByList() string {
	for i := range c.Members {
		m := &c.Members[i]
		if m.View == nil || m.View.Learner || len(m.View.Members) == 0 || c.Evidence(m.Name).HasEnded() || c.mayResume(m.View) {
			continue
		}
		voters, left := c.countListed(m.View)
		return fmt.Sprintf(" By the member list of %s, %d of %d voters and their data no longer exist.", m.Name, voters-left, voters)
	}
	return ""
}

// missingProof says what is missing for the proof that a loss is permanent; empty if the
// voters that may come back are a quorum.
func (c *Cluster) missingProof() string {
	text := ""
	for _, m := range c.undecided() {
		text += " Permanent loss is unconfirmed until member " + m.Name + ", which may vote by now, responds, or its pod and PVC no longer exist"
		if p := c.pod(m.Name); p != nil {
			text += because(p.Waiting)
		}
		text += "."
	}
	for _, p := range c.unproven() {
		text += " Evidence is missing: " + MissingEnd(p.Name, p.Node) + "."
	}
	return text
}

// unproven returns the pods of voters whose deletion was requested and that have not ended.
// Their members may still have a quorum among them, and acknowledge writes.
func (c *Cluster) unproven() []*Pod {
	var list []*Pod
	for _, m := range c.electorate() {
		if p := c.pod(m.Name); p != nil && p.Evidence == DeletionRequested && !c.HasPVC(m.Name) {
			list = append(list, p)
		}
	}
	return list
}

// onLostNodes returns the pods of voters that do not respond and whose nodes may be lost: the node is not ready, or it has
// not ended a pod that is overdue.
func (c *Cluster) onLostNodes() []*Pod {
	var list []*Pod
	for _, m := range c.electorate() {
		p := c.pod(m.Name)
		if p == nil || m.Name == c.StoppedSource || m.Response != NoResponse || p.Evidence.HasEnded() {
			continue
		}
		if p.NodeNotReady || p.Evidence == DeletionRequested && p.Overdue {
			list = append(list, p)
		}
	}
	return list
}

// lostNodes names the pods on nodes that may be lost, for which no evidence of unproven is missing.
func (c *Cluster) lostNodes() string {
	text, named := "", c.unproven()
	for _, p := range c.onLostNodes() {
		switch {
		case slices.Contains(named, p):
		case p.Evidence == DeletionRequested:
			text += " Member " + p.Name + " does not respond: " + MissingEnd(p.Name, p.Node) + "."
		default:
			text += " Member " + p.Name + " does not respond: " + NotReadyNode(p.Name, p.Node, p.NodeUnread) + "."
		}
	}
	return text
}

// because appends a cause to a text.
func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(cause, ".")
}

// isIncomplete is true if the pods of all members that were taken back have run, and no quorum has responded, for
// so long that more of them must have voted. The pod of a member whose PVC a recovery reads is stopped.
func (c *Cluster) isIncomplete(voters []*Member) bool {
	if !c.TakenBack || c.UnreadFor < IncompleteGrace {
		return false
	}
	for _, m := range voters {
		p := c.pod(m.Name)
		if m.Name != c.StoppedSource && (p == nil || !p.Running || p.RunningFor < IncompleteGrace || !c.stateWith(m, Votes).IsDown()) || !c.HasPVC(m.Name) {
			return false
		}
	}
	return true
}
