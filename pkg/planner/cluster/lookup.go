// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// pod returns the pod called name that belongs to the cluster, or nil.
func (o *Observed) pod(name string) *Pod {
	for i := range o.Pods {
		if o.Pods[i].Name == name && o.Pods[i].Owned {
			return &o.Pods[i]
		}
	}
	return nil
}

// member returns the member called name, or nil.
func (o *Observed) member(name string) *Member {
	for i := range o.Etcd.Members {
		if o.Etcd.Members[i].Name == name {
			return &o.Etcd.Members[i]
		}
	}
	return nil
}

// pvc returns the PVC of the member with a name, or nil.
func (o *Observed) pvc(name string) *PVC {
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if c.Name == name && c.Owned && !c.Terminating {
			return c
		}
	}
	return nil
}

// prepared returns the prepared pod called name, or nil.
func (o *Observed) prepared(name string) *Pod {
	for i := range o.Prepared {
		if o.Prepared[i].Name == name {
			return &o.Prepared[i]
		}
	}
	return nil
}

// preparedPVC returns the PVC of a prepared pod, or nil.
func (o *Observed) preparedPVC(name string) *PVC {
	for i := range o.PreparedPVCs {
		if c := &o.PreparedPVCs[i]; c.Name == name && !c.Terminating {
			return c
		}
	}
	return nil
}

func (o *Observed) lastMemberStatus(m *Member) *v1beta2.MemberStatus {
	for i := range o.Cluster.Status.MemberStatuses {
		if s := &o.Cluster.Status.MemberStatuses[i]; s.ID == m.id() {
			return s
		}
	}
	return nil
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
	for i := range o.PVCs {
		if o.pvc(o.PVCs[i].Name) != nil {
			names = append(names, o.PVCs[i].Name)
		}
	}
	return names
}

// joiningMember returns the member whose joining is not finished, or nil.
func (o *Observed) joiningMember() *Member {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Learner || !m.Started {
			return m
		}
	}
	return nil
}
