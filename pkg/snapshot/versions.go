// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

// Names that etcd uses in its database.
const (
	metaBucket        = "meta"
	storageVersionKey = "storageVersion"
	termKey           = "term"
	clusterBucket     = "cluster"
	clusterVersionKey = "clusterVersion"
)

// undecided is the cluster version that etcd notes before all members have told theirs.
const undecided = "3.0.0"

// versions are what etcd has noted in its database about the version of the data.
type versions struct {
	// storage is written by etcd 3.6 and newer, up to 5 s after the cluster version.
	storage string
	// cluster is written by the first leader, a moment after its election.
	cluster string
	// term is written since etcd 3.5, with the first entry of the raft log.
	term bool
}

// version returns the version of the data, which etcd 3.6 and newer write into the storage
// as soon as the cluster has one. It is empty in a database that is older than that.
func (v versions) version() string {
	switch {
	case v.storage != "":
		return v.storage
	case v.cluster != undecided:
		return v.cluster
	default:
		return ""
	}
}

// merge adds what was found elsewhere in the same database.
func (v *versions) merge(other versions) {
	if other.storage != "" {
		v.storage = other.storage
	}
	if other.cluster != "" {
		v.cluster = other.cluster
	}
	v.term = v.term || other.term
}

// add takes one entry of a bucket; other entries than versions are ignored.
func (v *versions) add(bucket, key string, value []byte) {
	switch {
	case bucket == metaBucket && key == storageVersionKey:
		v.storage = string(value)
	case bucket == metaBucket && key == termKey:
		v.term = true
	case bucket == clusterBucket && key == clusterVersionKey:
		v.cluster = string(value)
	}
}
