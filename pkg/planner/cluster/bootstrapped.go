// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// HasServed is true if the cluster has ever served, so that members of it may run.
func HasServed(o *Observed) bool { return isBootstrapped(o) }

// isBootstrapped is true if this cluster has ever served. More than one place is
// asked, so that losing one of them never leads to a second bootstrap member.
func isBootstrapped(o *Observed) bool {
	if o.Record.ClusterID != "" && o.Record.State != NotOwned {
		return true
	}
	if o.ClientService == Current || o.ClientService == Drifted {
		return true // clients are published to only after the record was written
	}
	if !o.Etcd.Linearizable && !takesOver(o.Cluster) && listsOthers(memberByName(o.Etcd.Members, o.BootstrapName)) {
		return true // members are added only after the record was written
	}
	return isReportedServed(o.Cluster.Status.Phase) // even if a bootstrap member has responded: it was not published to clients
}

// listsOthers is true for a member that has responded with a list of more members than itself.
func listsOthers(m *Member) bool { return m != nil && m.View != nil && len(m.View.Members) > 1 }
