// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Member is one member, as it says itself or as the status says.
type Member struct {
	Name, ID, Role, Version, Node, Pod, PodState, PVC, PVCState string
	DBSize, Term, Lag                                           int64
	CertificateExpiry                                           *metav1.Time
	// LagKnown is true if Lag is what the member said.
	LagKnown bool
	// State is one word or two: healthy, no response, not serving, no leader, alarm, unknown.
	State string
	// Healthy is true if State is.
	Healthy bool
	// Fault says what is wrong; empty if nothing is.
	Fault string
}

// Members returns the members in the order of their names.
func Members(s *Status) []Member {
	var list []Member
	if s.Health != nil {
		for i := range s.Health.Members {
			list = append(list, fromHealth(&s.Health.Members[i], s.Cluster))
		}
		return list
	}
	for i := range s.Cluster.Status.MemberStatuses {
		list = append(list, fromStatus(&s.Cluster.Status.MemberStatuses[i]))
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// roleRecovery is the role of a recovery member, from which the cluster goes on. It is no member
// of the present etcd.
const roleRecovery = "recovery"

// role translates: a follower votes, as the leader does and a learner does not.
func role(r v1beta2.MemberRole) string {
	switch r {
	case v1beta2.MemberRoleFollower:
		return "voter"
	case "":
		return "-"
	default:
		return strings.ToLower(string(r))
	}
}

func fromHealth(m *v1beta2.MemberHealth, cluster *v1beta2.EtcdCluster) Member {
	result := Member{
		Name: m.Name, ID: m.ID, Role: role(m.Role), Version: m.Version, DBSize: m.DBSize, Term: m.Term, Lag: m.RaftLag, LagKnown: m.Responded,
		CertificateExpiry: m.CertificateExpiry,
	}
	if p := m.Pod; p != nil {
		result.Pod, result.Node, result.PodState = p.Name, p.Node, podState(p)
	}
	if c := m.Claim; c != nil {
		result.PVC, result.PVCState = c.Name, string(c.Phase)
		if c.Capacity != "" {
			result.PVCState = c.Capacity
		}
		if c.Terminating {
			result.PVCState = "Terminating"
		}
	}
	if r := cluster.Status.Recovery; r.IsInProgress() && r.RecoveryMember == m.Name {
		result.Role = roleRecovery
		if !m.Responded && m.Pod != nil && m.Pod.Phase == corev1.PodRunning && m.Pod.Restarts == 0 {
			result.State = "filling"
			return result
		}
	}
	if s := statusOf(cluster, m.Name); s != nil && s.Unmanaged && !m.Responded {
		fromController(&result, s)
		return result
	}
	result.State, result.Fault = judge(m, statusOf(cluster, m.Name), isHibernated(cluster))
	result.Healthy = result.State == "healthy"
	return result
}

// fromController fills in what the controller reports about a member that another program runs. Only the
// controller sends requests to such a member.
func fromController(m *Member, s *v1beta2.MemberStatus) {
	m.Role, m.Version, m.DBSize, m.PodState = role(s.Role), s.Version, s.DBSize, "another program"
	m.Healthy = s.Healthy == corev1.ConditionTrue
	m.State = "healthy"
	if !m.Healthy {
		m.State, m.Fault = "no response", "another program runs it; the controller reports: "+s.Message
	}
}

// judge returns the state of a member, and what is wrong with it.
func judge(m *v1beta2.MemberHealth, status *v1beta2.MemberStatus, hibernated bool) (state, fault string) {
	switch {
	case hibernated && m.Pod == nil:
		return "asleep", ""
	case !m.Responded && m.Role == v1beta2.MemberRolePending:
		return "joining", podFault(m.Pod)
	case !m.Responded:
		return "no response", "no response: " + m.Error + podDetails(m.Pod)
	case len(m.Alarms) > 0:
		return "alarm", "alarm " + strings.Join(m.Alarms, ", ")
	case m.Leader == "":
		return "no leader", "it responds and follows no leader"
	case status != nil && status.Healthy == corev1.ConditionFalse:
		return "not serving", "it responds and does not serve: " + status.Message
	case len(m.Errors) > 0:
		return "error", "it reports: " + strings.Join(m.Errors, ", ")
	default:
		return "healthy", ""
	}
}

func podState(p *v1beta2.MemberPod) string {
	state := string(p.Phase)
	switch {
	case p.Terminating:
		state = "Terminating"
	case p.Phase == corev1.PodRunning && !p.Ready:
		state = "Running, not ready"
	}
	if p.Restarts > 0 {
		state += fmt.Sprintf(", restarts %d", p.Restarts)
	}
	return state
}

// podDetails adds what Kubernetes says about the pod of a member that does not respond.
func podDetails(p *v1beta2.MemberPod) string {
	if fault := podFault(p); fault != "" {
		return " (" + fault + ")"
	}
	return ""
}

func podFault(p *v1beta2.MemberPod) string {
	switch {
	case p == nil:
		return ""
	case p.Message != "":
		return "pod " + podState(p) + ": " + p.Message
	case p.Phase != corev1.PodRunning || p.Restarts > 0 || p.Terminating:
		return "pod " + podState(p)
	default:
		return ""
	}
}

func fromStatus(m *v1beta2.MemberStatus) Member {
	result := Member{
		Name: m.Name, ID: m.ID, Role: role(m.Role), Version: m.Version, Node: m.Node, Pod: m.Pod, PVC: m.Claim,
		DBSize: m.DBSize, Lag: m.RaftLag, LagKnown: m.Healthy == corev1.ConditionTrue, State: "unknown",
	}
	switch m.Healthy {
	case corev1.ConditionTrue:
		result.State, result.Healthy = "healthy", true
	case corev1.ConditionFalse:
		result.State, result.Fault = "not healthy", m.Reason+": "+m.Message
	case corev1.ConditionUnknown:
		result.Fault = m.Reason + ": " + m.Message
	}
	return result
}

func statusOf(cluster *v1beta2.EtcdCluster, name string) *v1beta2.MemberStatus {
	for i := range cluster.Status.MemberStatuses {
		if m := &cluster.Status.MemberStatuses[i]; m.Name == name {
			return m
		}
	}
	return nil
}

func isHibernated(cluster *v1beta2.EtcdCluster) bool {
	return cluster.Spec.Replicas != nil && *cluster.Spec.Replicas == 0
}
