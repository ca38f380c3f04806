// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
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
	// RemedyBringBack: no member responds, and a pod or PVC exists from which one may.
	RemedyBringBack Remedy = "BringBack"
	// RemedyRestore: only a backup is left.
	RemedyRestore Remedy = "Restore"
	// RemedyGrantAccess: etcd rejects the controller.
	RemedyGrantAccess Remedy = "GrantAccess"
	// RemedyCheckNetwork: the network between controller and members may be the cause.
	RemedyCheckNetwork Remedy = "CheckNetwork"
)

// Texts that say what to do.
const (
	// NoActionYet is for what usually ends by itself.
	NoActionYet = "No action needed unless this persists."
	// BringBackFirst is for a lost cluster without a member that responds, if a pod or a
	// PVC still exists.
	BringBackFirst = "A pod or PVC still exists. Bring it back first: recovery from it loses less data than a restore."
	// GrantAccess says what lets the controller in where etcd's own authorization is on.
	GrantAccess = "etcd's own authorization accepts the controller only as its user root. Use a client certificate with that common name, " +
		"which spec.TLS.auto issues. Without certificates, disable the authorization (etcdctl auth disable)."
	// ConfirmNodeOff says how a person supplies the evidence that an unresponsive node cannot
	// supply.
	ConfirmNodeOff = "If the node is switched off permanently, delete its Node object or taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute."

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
}

// MissingEnd says which evidence is missing for the end of a pod whose deletion was requested.
func MissingEnd(pod, node string) string {
	return "pod " + pod + " is being deleted, and its node " + node + " has not reported that it has ended"
}

// NotReadyNode says which evidence is missing for the end of a pod on a node that is not ready.
func NotReadyNode(pod, node string) string {
	return "pod " + pod + " may run, because its node " + node + " is not ready and reports nothing"
}

// remedyOfPermanentLoss returns the best remedy of a permanent loss.
func (c *Cluster) remedyOfPermanentLoss() Remedy {
	switch {
	case len(c.RankSources()) > 0:
		return RemedyRecover
	case len(c.Remains()) > 0:
		return RemedyBringBack
	default:
		return RemedyRestore
	}
}

// howToResume is the advice while enough members may come back.
func (c *Cluster) howToResume() string {
	return resumes + " If they cannot come back, " + c.howToRecover(false) + "."
}

// howToProve says how to supply the missing evidence; empty if none is missing.
func (c *Cluster) howToProve() string {
	if len(c.unproven()) == 0 {
		return ""
	}
	return " " + ConfirmNodeOff
}

// howToRecover says what a person can do about a lost quorum. The controller acts by itself
// only on a permanent loss.
func (c *Cluster) howToRecover(permanent bool) string {
	automatic := permanent && c.Options.Automatic
	switch responds := len(c.RankSources()) > 0; {
	case responds && automatic:
		return fmt.Sprintf("no action needed: after %v the controller recovers from the member that has lost the least", c.Options.Grace)
	case responds:
		return "create etcdclusters/" + c.Options.Cluster + "/recover to recover from the member that has lost the least (dryRun=All shows the plan), " +
			"or restore a backup with an EtcdRestore"
	case automatic && c.Options.LastBackup != "" && len(c.Remains()) == 0:
		return fmt.Sprintf("no action needed: after %v the controller restores the last backup, EtcdBackup %s", c.Options.Grace, c.Options.LastBackup)
	default:
		return c.howToRestore()
	}
}

// howToRestore says what a person can do where no member responds. Where a pod or a PVC
// exists that may come back, it offers no command that can be typed without a thought.
func (c *Cluster) howToRestore() string {
	switch {
	case len(c.Remains()) > 0:
		return "bring back the pod or PVC that still exists, because recovery from it loses less data than a restore; otherwise restore a backup with an EtcdRestore"
	case c.Options.LastBackup == "":
		return "restore a backup with an EtcdRestore"
	default:
		return "create etcdclusters/" + c.Options.Cluster + "/restore to restore the last backup, EtcdBackup " + c.Options.LastBackup +
			" (dryRun=All shows the plan), or restore another backup with an EtcdRestore"
	}
}

// asSentence makes a sentence of a clause.
func asSentence(clause string) string {
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
