// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "slices"

// voters returns the voting members.
func (o *Observed) voters() []*Member {
	var voters []*Member
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// leader returns the member that most of the healthy voters see as leader, or nil
// if they see none or do not agree.
func (o *Observed) leader() *Member {
	votes := map[uint64]int{}
	total := 0
	for _, m := range o.voters() {
		if m.Health == Healthy && m.Leader != 0 {
			votes[m.Leader]++
			total++
		}
	}
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; 2*votes[m.ID] > total {
			return m
		}
	}
	return nil
}

// healthyVoters counts the voters that serve and whose pods are here to stay,
// leaving out the ones named.
func (o *Observed) healthyVoters(except ...*Member) int {
	n := 0
	for _, m := range o.voters() {
		if o.state(m).IsServing() && !slices.Contains(except, m) {
			n++
		}
	}
	return n
}

// without counts the voters that serve when m does not. A voter that follows another leader
// than most voters may not reach their leader, and does not count when m goes.
func (o *Observed) without(m *Member) int {
	except, leader := []*Member{m}, o.leader()
	for _, other := range o.voters() {
		if leader != nil && other.Leader != leader.ID {
			except = append(except, other)
		}
	}
	return o.healthyVoters(except...)
}
