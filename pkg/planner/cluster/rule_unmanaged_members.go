// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// ruleUnmanagedMembers waits while etcd has members that this controller did not add. It counts each of
// their votes as one that does not serve, because no pod and no response tells about them. So it
// rolls out no change and does not change the size. It removes none of them: another program may
// run them and hold data there.
//
// It does replace members of its own that have lost their pod and their data. It waits with that, too, while
// an unmanaged member is a learner or has not started: a change is under way then (S3). And it waits while
// a member of its own has another peer URL, because that member is not lost. It removes
// a lost voter only if the voters of this cluster that serve are a quorum of those that are left
// (S2). The removal makes the quorum smaller and never ends it, whatever the unmanaged members do. The
// successor joins as a learner, and votes only if the members that serve are a quorum with it.
// A wait would let the next loss end the quorum.
func ruleUnmanagedMembers(o *Observed) (Plan, bool) {
	unmanaged := listUnmanaged(o.Etcd.Members)
	if len(unmanaged) == 0 {
		return Plan{}, false
	}
	changing := func(m *Member) bool { return m.Learner || !m.Started || ownAtAnotherURL(o, m) != "" }
	if !slices.ContainsFunc(unmanaged, changing) {
		if plan, heals := healBesideUnmanaged(o); heals {
			return plan, true
		}
	}
	return wait(recheckWaiting, ReasonUnmanagedMember, describeUnmanaged(unmanaged), removeUnmanaged(o, unmanaged[0])), true
}

// healBesideUnmanaged replaces members of the cluster that have lost their pod and their data.
func healBesideUnmanaged(o *Observed) (Plan, bool) {
	if plan, repairs := repairBesideOthers(o); repairs {
		return plan, true
	}
	if len(listOwnVoters(o.Etcd.Members)) < desiredSize(o.Cluster) {
		return ruleScaleUp(o)
	}
	return Plan{}, false
}

// repairBesideOthers finishes the joining of a member of the cluster, or removes a member that has lost its
// pod and its data, while etcd has members that another program runs.
func repairBesideOthers(o *Observed) (Plan, bool) {
	if len(listOwnVoters(o.Etcd.Members)) > 0 { // otherwise no member of the cluster has confirmed the list
		if plan, decides := ruleOrphans(o); decides {
			return plan, true
		}
	}
	if m := findJoiningMember(o.Etcd.Members); m != nil && !m.Unmanaged {
		return ruleJoining(o)
	}
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if isLost(o, m) {
			return replaceLostBesideOthers(o, m), true
		}
	}
	return Plan{}, false
}

// replaceLostBesideOthers removes a voter of the cluster that has lost its pod and its data, once the
// pod of its successor waits. One above the desired size has no successor.
func replaceLostBesideOthers(o *Observed, m *Member) Plan {
	if len(listOwnVoters(o.Etcd.Members)) <= desiredSize(o.Cluster) && nextPrepared(o) == nil {
		return awaitPrepared(o)
	}
	return removeVoter(o, m, RemoveLost)
}

// ownAtAnotherURL returns the name of the pod or PVC of this cluster to which an unmanaged member belongs; empty if there is none.
func ownAtAnotherURL(o *Observed, m *Member) string {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && isOwnUnderAnotherURL(o, m, p.Name) {
			return p.Name
		}
	}
	for i := range o.PVCs {
		if c := &o.PVCs[i]; c.Owned && isOwnUnderAnotherURL(o, m, c.Name) {
			return c.Name
		}
	}
	return ""
}

// mostDescribed is how many unmanaged members a message describes.
const mostDescribed = 3

// describeUnmanaged says which members another program added.
func describeUnmanaged(unmanaged []*Member) string {
	var list []string
	for _, m := range unmanaged[:min(len(unmanaged), mostDescribed)] {
		var about []string
		switch {
		case !m.Started:
			about = append(about, "not started")
		case m.OwnName != "" && m.OwnName != m.Name:
			about = append(about, fmt.Sprintf("calls itself %q", untrusted.Within(m.OwnName, maxRepeated)))
		}
		if m.Learner {
			about = append(about, "learner")
		}
		if len(m.PeerURLs) > 0 {
			about = append(about, "peer URL "+untrusted.Within(m.PeerURLs[0], maxRepeated))
		}
		text := hexID(m.ID)
		if len(about) > 0 {
			text += " (" + strings.Join(about, ", ") + ")"
		}
		list = append(list, text)
	}
	if left := len(unmanaged) - len(list); left > 0 {
		list = append(list, fmt.Sprintf("and %d more", left))
	}
	if len(unmanaged) == 1 {
		return "etcd has a member that this controller did not add: " + list[0]
	}
	return fmt.Sprintf("etcd has %d members that this controller did not add: %s", len(unmanaged), strings.Join(list, ", "))
}

// maxRepeated is how many bytes of a name or a URL a message repeats.
const maxRepeated = 128

// copiedFrom returns the other EtcdCluster that the peer URL of a member of this cluster names; empty if there is none. The
// member runs on a copy of a PVC then, and the member list is that of the other cluster.
func copiedFrom(o *Observed) string {
	own := types.NamespacedName{Namespace: o.Cluster.Namespace, Name: o.Cluster.Name}
	for _, m := range listUnmanaged(o.Etcd.Members) {
		if ownAtAnotherURL(o, m) == "" {
			continue
		}
		for _, peer := range m.PeerURLs {
			if other, named := resources.ClusterFromPeerURL(peer); named && other != own {
				return untrusted.Within(other.String(), maxRepeated)
			}
		}
	}
	return ""
}

// removeUnmanaged is the remedy: what removes an unmanaged member. A member of this cluster whose peer URL was
// changed gets its URL back instead. Beside a copy of another cluster no change of the members is named: the members of
// that cluster would commit it.
func removeUnmanaged(o *Observed, m *Member) string {
	if other := copiedFrom(o); other != "" {
		return fmt.Sprintf("The members have the peer URLs of EtcdCluster %s: they run on copies of its PVCs, and a change of the members changes that cluster. Change none. "+
			"Delete EtcdCluster %s in namespace %s, and restore a backup of %s instead.", other, o.Cluster.Name, o.Cluster.Namespace, other)
	}
	if name := ownAtAnotherURL(o, m); name != "" {
		return fmt.Sprintf("It is member %s of this cluster, and its peer URL was changed. Set the URL back: kubectl etcd ctl %s -n %s -- member update %s --peer-urls=%s.",
			name, o.Cluster.Name, o.Cluster.Namespace, hexID(m.ID), resources.PeerURL(o.Cluster, name))
	}
	// A member that is stopped first still counts, and the quorum may be lost with it.
	return fmt.Sprintf("Remove that member, and stop it afterwards: kubectl etcd ctl %s -n %s -- member remove %s. Without the plugin: etcdctl member remove %s.",
		o.Cluster.Name, o.Cluster.Namespace, hexID(m.ID), hexID(m.ID))
}
