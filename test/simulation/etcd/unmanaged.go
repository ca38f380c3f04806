// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"
	"strings"
)

// othersOwner is the owner of an etcd that no EtcdCluster declares.
const othersOwner = "others"

// unmanagedURL is how the peer URL of a member begins that another program has added.
const unmanagedURL = "http://foreign-"

// HasUnmanaged is true if another program has added a member.
func (m *Membership) HasUnmanaged() bool {
	return slices.ContainsFunc(m.Peers, func(p Peer) bool { return strings.HasPrefix(p.Url, unmanagedURL) })
}

// IsOfOthers is true for an etcd that no cluster of the world has or takes over.
func (l *Lineage) IsOfOthers() bool { return l.Owner == othersOwner }

// StartOther starts an etcd of one member that has nothing to do with any cluster, unless it runs, and
// returns the address of the member.
func (e *World) StartOther(version string) (string, error) {
	const name = "other-0"
	if slices.ContainsFunc(e.Processes, func(p *Process) bool { return p.Dir.Lineage.IsOfOthers() }) {
		return name, nil
	}
	return name, e.StartExisting(othersOwner, version, name)
}

// AddUnmanaged has another program add a member that no controller knows. A name is that under which it says
// that it has started; without one it never starts. It never serves.
func (e *World) AddUnmanaged(at *Process, name string, learner bool) error {
	url := fmt.Sprintf("%s%d:2380", unmanagedURL, e.ids)
	if err := e.Add(at, url, learner); err != nil {
		return err
	}
	leader := e.QuorumLeader(at)
	if leader == nil || name == "" {
		return nil
	}
	e.Append(leader, Entry{Kind: entryPublish, member: Peer{Id: leader.Members.ByURL(url).Id, Name: name}})
	return nil
}
