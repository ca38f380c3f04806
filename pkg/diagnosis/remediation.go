// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Remedy is the kind of action that helps against the loss of a quorum.
type Remedy string

// Remedies of a lost quorum.
const (
	// RemedyWaitForMembers: the cluster resumes when enough members are back.
	RemedyWaitForMembers Remedy = "WaitForMembers"
	// RemedyRecover: a recovery continues from a member that responds.
	RemedyRecover Remedy = "Recover"
	// RemedyReadVolume: no member responds, and a recovery reads the PVC of a survivor.
	RemedyReadVolume Remedy = "ReadVolume"
	// RemedyBringBack: no member responds, and a pod or PVC exists. It helps if a quorum of
	// voters comes back, or a member that has not restarted.
	RemedyBringBack Remedy = "BringBack"
	// RemedyRestore: only a backup is left.
	RemedyRestore Remedy = "Restore"
	// RemedyGrantAccess: etcd rejects the controller.
	RemedyGrantAccess Remedy = "GrantAccess"
	// RemedyShrinkList: etcd lists more than the controller reads.
	RemedyShrinkList Remedy = "ShrinkList"
	// RemedyCheckNetwork: the network between controller and members may be the cause.
	RemedyCheckNetwork Remedy = "CheckNetwork"
)

// Texts that say what to do.
const (
	// NoActionYet is for what usually ends by itself.
	NoActionYet = "No action needed unless this persists."
	// KeepPVCs is for a lost cluster without a member that responds, if a pod or a PVC still
	// exists. etcd serves clients only after its first proposal was committed, and a member
	// that starts without a quorum commits none.
	KeepPVCs = "A survivor that has restarted responds to no client before a quorum of voters runs. Bring back a quorum of voters, " +
		"or a survivor that was only out of reach and has not restarted. Keep each PVC: it may hold newer data than a backup."
	// ReadVolume is for a lost cluster without a member that responds, if a voter has a PVC.
	ReadVolume = "No member responds, because a survivor that has restarted needs a quorum of voters for that. Keep all PVCs. " +
		"A recovery stops the pod of a survivor and reads its PVC. Of several PVCs, choose one: nothing tells which has lost the least."
	// GrantAccess says what lets the controller in where etcd's own authorization is on.
	GrantAccess = "etcd's own authorization accepts the controller only as its user root. Use a client certificate with that common name, " +
		"which spec.TLS.auto issues. Without certificates, disable the authorization (etcdctl auth disable)."
	// ShrinkList says what makes a member list readable that is too large.
	ShrinkList = "Find out which program responds at the client ports of the members. If it is their etcd, remove the members and URLs that are not in use, " +
		"with `etcdctl member remove` and `etcdctl member update`. The controller reads at most 64 members, 64 URLs of each, and 1 KiB of a name or URL."
	// ConfirmNodeOff says how a person supplies the evidence that an unresponsive node cannot
	// supply.
	ConfirmNodeOff = "If the node is switched off permanently, delete its Node object or taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. A pod that tolerates every taint stays then: delete it with --force."

	volumesMove = "Members with PVCs start on other nodes then if their volumes can move, and nothing is lost."

	resumes = "The cluster resumes untouched as soon as enough members come back."
)

// Options are the ways out of the loss of a quorum that the cluster has.
type Options struct {
	// Cluster is the name of the EtcdCluster.
	Cluster string
	// Automatic is true if the controller recovers the cluster without a request, Grace after
	// it was proven that the loss is permanent.
	Automatic bool
	Grace     time.Duration
	// LastBackup is the EtcdBackup with the last backup that can be restored; empty if there is
	// none.
	LastBackup string
	// Encrypted is true if a restore of LastBackup needs a request, which names what decrypts it.
	Encrypted bool
}

// RestoreEncrypted says how a person restores the last backup of a cluster, which is encrypted.
func RestoreEncrypted(cluster, backup string) string {
	return "create etcdclusters/" + cluster + "/restore with spec.decryption.ageIdentitiesSecret set to the Secret with the identities, to restore the last backup, EtcdBackup " +
		backup + ", which is encrypted (dryRun=All shows the plan)"
}

// MissingEnd says which evidence is missing for the end of a pod whose deletion was requested.
func MissingEnd(pod, node string) string {
	return "pod " + pod + " is being deleted, and its node " + node + " has not reported that it has ended"
}

// NotReadyNode says which evidence is missing for the end of a pod on a node that is not ready. Unread is why the node
// could not be read, if it was not.
func NotReadyNode(pod, node, unread string) string {
	if unread != "" {
		return "pod " + pod + " may run, because its node " + node + " could not be read: " + unread
	}
	return "pod " + pod + " may run, because its node " + node + " is not ready and reports nothing"
}

// remedyOfPermanentLoss returns the best remedy of a permanent loss.
func (c *Cluster) remedyOfPermanentLoss() Remedy {
	switch {
	case len(c.RankSources()) > 0:
		return RemedyRecover
	case len(c.volumeSourcesOfPermanentLoss()) > 0:
		return RemedyReadVolume
	case len(c.Remains()) > 0:
		return RemedyBringBack
	default:
		return RemedyRestore
	}
}

// howToResume is the advice while enough members may come back.
func (c *Cluster) howToResume() string {
	return resumes + c.howToReplaceNodes() + " If they cannot come back, " + c.howToRecover(false) + "."
}

// howToReplaceNodes says what helps against a lost node; empty if no voter is on one that may be lost. It comes before any
// recovery: with volumes that can move, it loses nothing.
func (c *Cluster) howToReplaceNodes() string {
	lost := c.onLostNodes()
	if len(lost) == 0 && len(c.unproven()) == 0 {
		return ""
	}
	text := " " + ConfirmNodeOff
	if slices.ContainsFunc(lost, func(p *Pod) bool { return c.HasPVC(p.Name) }) {
		text += " " + volumesMove
	}
	return text
}

// howToRecover says what a person can do about a lost quorum. The controller acts by itself
// only on a permanent loss.
func (c *Cluster) howToRecover(permanent bool) string {
	automatic := permanent && c.Options.Automatic
	if permanent {
		if clause := c.howToReadVolume(automatic); clause != "" {
			return clause
		}
	}
	switch responds := len(c.RankSources()) > 0; {
	case responds && automatic:
		return fmt.Sprintf("no action needed: after %v the controller recovers from the member that has lost the least", c.Options.Grace)
	case responds && c.DataDiffers:
		return "create etcdclusters/" + c.Options.Cluster + "/recover with spec.member set to the member whose data is right, as docs/how-to/corrupt-member.md says: " +
			"the data of the members differs (alarm CORRUPT)"
	case responds:
		return "create etcdclusters/" + c.Options.Cluster + "/recover to recover from the member that has lost the least (dryRun=All shows the plan), " +
			"or restore a backup with an EtcdRestore"
	case automatic && c.Options.LastBackup != "" && !c.Options.Encrypted && len(c.Remains()) == 0:
		return fmt.Sprintf("no action needed: after %v the controller restores the last backup, EtcdBackup %s", c.Options.Grace, c.Options.LastBackup)
	default:
		return c.howToRestore(permanent)
	}
}

// howToReadVolume says how a recovery reads the PVC of a survivor; empty if there is none to read.
func (c *Cluster) howToReadVolume(automatic bool) string {
	const otherwise = " (dryRun=All shows the plan), or restore a backup with an EtcdRestore"
	switch sources := c.volumeSourcesOfPermanentLoss(); {
	case len(sources) == 0:
		return ""
	case len(sources) > 1:
		return "create etcdclusters/" + c.Options.Cluster + "/recover with spec.member set to one of " + namesOf(sources) +
			" to recover from its PVC: no member responds, and nothing tells which has lost the least" + otherwise
	case automatic && c.isOnlyVolume(sources[0]):
		return fmt.Sprintf("no action needed: no member responds, and after %v the controller stops pod %s and recovers from its PVC", c.Options.Grace, sources[0].Name)
	case automatic:
		return "create etcdclusters/" + c.Options.Cluster + "/recover to recover from the PVC of member " + sources[0].Name +
			otherwise + ". No member responds. The controller does not do it by itself, because another member may come back with newer data, or this pod is ready or does not run"
	default:
		return "create etcdclusters/" + c.Options.Cluster + "/recover to recover from the PVC of member " + sources[0].Name +
			", whose pod is stopped for it: no member responds" + otherwise
	}
}

// howToRestore says what a person can do where no member responds. Where a pod or a PVC
// exists, it offers no command that can be typed without a thought.
func (c *Cluster) howToRestore(permanent bool) string {
	const restore = "restore a backup with an EtcdRestore. Keep each PVC, because it may hold newer data (spec.pod.persistentVolumeClaimRetentionPolicy.whenScaled=Retain). " +
		"If a PVC has whole data and those of a majority have none that can be used, a recovery reads it: see \"Damaged disks\" of docs/how-to/quorum-loss.md"
	switch {
	case len(c.Remains()) > 0 && permanent:
		return "bring back a quorum of voters: a survivor that has restarted responds to no client before a quorum runs. If that is impossible, " + restore
	case len(c.Remains()) > 0:
		return restore
	case c.Options.LastBackup == "":
		return "restore a backup with an EtcdRestore"
	case c.Options.Encrypted:
		return RestoreEncrypted(c.Options.Cluster, c.Options.LastBackup)
	default:
		return "create etcdclusters/" + c.Options.Cluster + "/restore to restore the last backup, EtcdBackup " + c.Options.LastBackup +
			" (dryRun=All shows the plan), or restore another backup with an EtcdRestore"
	}
}

// asSentence makes a sentence of a clause.
func asSentence(clause string) string {
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
