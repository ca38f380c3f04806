// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// whyUnfit returns what keeps members of this cluster from joining the etcd that it takes over; nil
// if they can.
func whyUnfit(o *Observed) *Wait {
	voters := listVoters(o.Etcd.Members)
	if why := whyOthers(o); why != nil {
		return why
	}
	for _, m := range listUnmanaged(o.Etcd.Members) {
		if why := whyMemberUnfit(o, m); why != nil {
			return why
		}
	}
	if upgradePathOf(o).lowest() == nil {
		return &Wait{Reason: ReasonExistingEtcdUnreachable, Message: "no member of the etcd in spec.bootstrap.existing says its version", Remedy: reachOldMembers}
	}
	if serving := quorumOf(o).countServing(); serving < len(voters) && len(listOwn(o.Etcd.Members)) == 0 {
		return &Wait{
			Reason:  ReasonExistingEtcdUnreachable,
			Message: fmt.Sprintf("%d of %d voters of the etcd in spec.bootstrap.existing serve and respond to the controller%s", serving, len(voters), notServingUnmanaged(o)),
			Remedy:  reachOldMembers,
		}
	}
	return nil
}

const (
	// reachOldMembers is the remedy if old members do not respond.
	reachOldMembers = "Bring these members back. If they serve, add their client URLs to spec.bootstrap.existing.clientEndpoints, and check the network between the controller and them."
	// finishChange is the remedy if another program is changing the members.
	finishChange = "Promote that member or remove it, with etcdctl."
)

// whyOthers says that the etcd to take over is that of another EtcdCluster, whose controller replaces its members; nil if
// it is not.
func whyOthers(o *Observed) *Wait {
	if o.Etcd.OfCluster == "" {
		return nil
	}
	return &Wait{
		Reason:  ReasonExistingEtcdUnsuitable,
		Message: "a member of the etcd in spec.bootstrap.existing belongs to EtcdCluster " + o.Etcd.OfCluster,
		Remedy:  "Restore a backup of that EtcdCluster instead.",
	}
}

// notServingUnmanaged names the old members that do not serve.
func notServingUnmanaged(o *Observed) string {
	text := ""
	for _, m := range listUnmanaged(o.Etcd.Members) {
		if m.Health != Healthy {
			text += "; " + m.Name + ": " + m.Message
		}
	}
	return text
}

// whyMemberUnfit is whyUnfit for one old member.
func whyMemberUnfit(o *Observed, m *Member) *Wait {
	unsuitable := func(message, remedy string) *Wait {
		return &Wait{Reason: ReasonExistingEtcdUnsuitable, Message: message, Remedy: remedy}
	}
	switch {
	case !m.Started:
		return unsuitable("member "+hexID(m.ID)+" of the etcd in spec.bootstrap.existing was added and has not started", finishChange)
	case m.Learner:
		return unsuitable("member "+m.Name+" of the etcd in spec.bootstrap.existing is a learner, and etcd has one learner at a time", finishChange)
	}
	scheme := "http"
	if resources.HasPeerTLS(o.Cluster) {
		scheme = "https"
	}
	for _, peer := range m.PeerURLs {
		u, err := url.Parse(peer)
		switch {
		case err != nil || u.Scheme != scheme:
			return unsuitable(fmt.Sprintf("member %s has the peer URL %s, and members of this cluster speak %s to each other", m.Name, peer, scheme),
				"Create the EtcdCluster with spec.TLS.static if the peer URLs of the running etcd are https, and without TLS if they are http.")
		case isLoopback(u.Hostname()):
			return unsuitable(fmt.Sprintf("member %s has the peer URL %s, which no pod of this cluster reaches", m.Name, peer),
				"Change the peer URL with etcdctl member update "+hexID(m.ID)+" --peer-urls, to an address that pods reach.")
		}
	}
	target, runs := parse(o.Cluster.Spec.Version), parse(m.Version)
	switch {
	case runs != nil && !resources.HasLearners(runs.String()):
		return unsuitable(fmt.Sprintf("member %s runs etcd %s, which knows no learners", m.Name, runs), "Upgrade the running etcd to 3.4 or later.")
	case target != nil && runs != nil && (target.Major() != runs.Major() || target.Minor() != runs.Minor()):
		return &Wait{
			Reason: ReasonVersionStep, Message: fmt.Sprintf("member %s of the etcd in spec.bootstrap.existing runs etcd %s, and spec.version is %s", m.Name, runs, target),
			Remedy: fmt.Sprintf("Set spec.version to a release of %d.%d. Upgrade when the old members are removed.", runs.Major(), runs.Minor()),
		}
	}
	return nil
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") || host == "0.0.0.0" || host == "::"
}

// keepsOldMembers is true for a plan that waits for nothing but the request to remove the old
// members. The cluster is as declared then.
func keepsOldMembers(plan Plan) bool {
	return plan.Wait != nil && plan.Wait.Reason == ReasonOldMembersKept
}
