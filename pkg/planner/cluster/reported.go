// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// reportedCondition returns what the last status said; the zero value if it said nothing.
func reportedCondition(conditions []v1beta2.ClusterCondition, t v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range conditions {
		if c.Type == t {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}

// sinceTransition is how long a condition of the last status has had its status; 0 if that is not
// known.
func sinceTransition(now time.Time, c v1beta2.ClusterCondition) time.Duration {
	at, err := time.Parse(time.RFC3339, c.LastTransitionTime)
	if err != nil {
		return 0
	}
	return now.Sub(at)
}

// doNotServe is how the condition Degraded begins to name the voters that do not serve.
const doNotServe = "voters that do not serve: "

// unresponsiveFor is for how long no member list could be read until a member that runs may restart
// because it does not respond. Kubernetes notices within that time that a node was cut off.
const unresponsiveFor = time.Minute

// notServedFor is how long the condition Degraded has named a voter at least. Its transition is no evidence: another
// voter may have been named since then. What changes the list of names begins the time again.
func notServedFor(conditions []v1beta2.ClusterCondition, now time.Time, m *Member) time.Duration {
	degraded := reportedCondition(conditions, v1beta2.ClusterConditionDegraded)
	list, is := strings.CutPrefix(degraded.Message, doNotServe)
	list, _, _ = strings.Cut(list, ";")
	at, err := time.Parse(time.RFC3339, degraded.LastUpdateTime)
	if err != nil || !is || !slices.Contains(strings.Split(list, ", "), m.Name) {
		return 0
	}
	return now.Sub(at)
}

// lastedFor is how long c has been what it is now.
func lastedFor(conditions []v1beta2.ClusterCondition, now time.Time, c v1beta2.ClusterCondition) time.Duration {
	if before := reportedCondition(conditions, c.Type); before.Status == c.Status {
		return sinceTransition(now, before)
	}
	return 0
}

// unreadFor is how long the member list could not be read, by the last status.
func unreadFor(conditions []v1beta2.ClusterCondition, now time.Time) time.Duration {
	switch before := reportedCondition(conditions, v1beta2.ClusterConditionQuorumLost); before.Status {
	case corev1.ConditionTrue:
		// Voters that come back after a proven loss elect a leader, too. The loss ends when they
		// have one.
		return max(diagnosis.ElectionGrace, sinceTransition(now, before))
	case corev1.ConditionUnknown:
		return sinceTransition(now, before)
	default:
		return 0
	}
}

// isReportedServed is true once the status has reported that the cluster runs. That is the
// one proof that lasts for as long as the cluster object. So the member is published to
// clients only after that status was written.
func isReportedServed(phase v1beta2.ClusterPhase) bool {
	switch phase {
	case v1beta2.ClusterPhaseRunning, v1beta2.ClusterPhaseFailed, v1beta2.ClusterPhaseHibernated:
		return true
	case v1beta2.ClusterPhaseNone, v1beta2.ClusterPhaseCreating:
		return false
	default:
		return true
	}
}

func reportedMember(reported []v1beta2.MemberStatus, m *Member) *v1beta2.MemberStatus {
	for i := range reported {
		if s := &reported[i]; s.ID == hexID(m.ID) {
			return s
		}
	}
	return nil
}

// isReportedStarted is true once the status says that a member has started. It comes before
// the vote: should the quorum be lost next, a member that the status calls pending does not vote.
func isReportedStarted(reported []v1beta2.MemberStatus, m *Member) bool {
	s := reportedMember(reported, m)
	return s != nil && hasReportedStart(s)
}

func hasReportedStart(s *v1beta2.MemberStatus) bool { return s.Role != v1beta2.MemberRolePending }

// isReportedClient is true if the status lists the Secret of a client.
func isReportedClient(reported []v1beta2.ClientStatus, c *Client) bool {
	return slices.ContainsFunc(reported, func(s v1beta2.ClientStatus) bool { return s.SecretName == c.Secret })
}

// hasUnreportedClients is true if the status is about to list another Secret, which is
// created in the next step.
func hasUnreportedClients(clients []Client, reported []v1beta2.ClientStatus) bool {
	return slices.ContainsFunc(clients, func(c Client) bool { return !isReportedClient(reported, &c) })
}
