// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

// Lineage is everything that descends from one start of a new cluster.
type Lineage struct {
	// Owner is the UID of the EtcdCluster, number its place among the lineages.
	Owner           string
	number          int
	ClusterID       uint64
	BootstrapMember string
	Token           string
	// Dirs holds the data directory of each member that ever had one.
	Dirs map[uint64]*DataDir
	// learners is true if its first version knew learners.
	learners bool
	// VersionUnknown is true if its version was changed before the status named one, so
	// that nothing could keep a user from a step that etcd cannot take.
	VersionUnknown bool
	// Members is the list as far as any leader has committed it.
	Members *Membership
	// Predecessor is the etcd whose data this etcd has taken over. Replaced is true once
	// another etcd has taken over the data of this etcd.
	Predecessor *Lineage
	Replaced    bool
	// QuorumLost is true once faults took the quorum permanently.
	QuorumLost bool
	// Order lists the IDs in dirs as they came.
	Order []uint64
	space
}

// DataDir is a data directory, on a volume or in a pod. It survives its process.
type DataDir struct {
	// Id is 0 while the directory is empty.
	Id      uint64
	Name    string
	Url     string
	Lineage *Lineage
	Log     []Entry
	commit  int
	Term    uint64
	// snapshot is the index of the last snapshot.
	snapshot uint64
	// Members is the list as far as it was applied.
	Members *Membership
	// Version last ran on it.
	Version string
	// Doomed directories will be destroyed: the deletion of their pod was requested.
	Doomed, Destroyed bool
	// Wiped directories took the place of one that held a member, and no member starts from
	// damaged ones.
	Wiped, Damaged bool
	// filler is the marker of the recovery that has filled the directory.
	filler string
	// Hung directories are on a disk that takes no writes for now.
	Hung bool
	// Stalled is true for a learner that gets no entries of the log.
	Stalled bool
	// file is how large the database file is at least.
	file int64
}

// index returns the raft index of the n-th entry that is kept.
func (d *DataDir) index(n int) uint64 {
	if n == 0 {
		return 0
	}
	return uint64(n) + d.Log[n-1].Extra
}

// IsEmpty is true while a directory holds no member.
func (d *DataDir) IsEmpty() bool { return d.Id == 0 }

// last returns the term of the last entry, and how many there are.
func (d *DataDir) last() (term uint64, length int) {
	if len(d.Log) == 0 {
		return 0, 0
	}
	return d.Log[len(d.Log)-1].term, len(d.Log)
}

// IsNewer is true if the log of d is at least as new as that of other.
func (d *DataDir) IsNewer(other *DataDir) bool {
	dt, dl := d.last()
	ot, ol := other.last()
	return dt > ot || (dt == ot && dl >= ol)
}

func (d *DataDir) become(id uint64, name, url string, l *Lineage) {
	d.Id, d.Name, d.Url, d.Lineage = id, name, url, l
	l.Dirs[id] = d
	l.Order = append(l.Order, id)
}
