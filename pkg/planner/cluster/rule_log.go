// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Members before 3.6 write requests to the log, when they start and when the version of
// the cluster changes, that 3.7 cannot read: it ends as soon as it comes upon one. It does
// on its own disk, where it reads the log from the last snapshot on, and in what a leader
// of 3.6 sends to a member that joins or lags. So before the first member may run 3.7 the
// log must have gone on, without such requests, for as long as it takes until every member
// has made a snapshot behind them and no leader keeps them in memory. A quiet cluster is
// helped along with entries that change nothing.
const (
	lastMixedMinor = 6
	// catchUpEntries are what a leader keeps in memory for members that lag.
	catchUpEntries = 5000
	// logSlack is for snapshots that are made beside the log, and for what an earlier leader
	// had not committed yet.
	logSlack = 500
	// padStep is how many entries are added between two looks.
	padStep = 2000
)

// LogRecord says from where on the log of etcd holds nothing that 3.7 cannot read. It
// stands on the peer service.
type LogRecord struct {
	// ClusterID in hexadecimal of the etcd that it is about.
	ClusterID string
	// Index is where the log stood when every member ran 3.6.
	Index uint64
	// Readable is true once no member needs anything before Index.
	Readable bool
}

// logBars is true if members that run low must not be joined by ones that run target yet.
func (o *Observed) logBars(low, target *version.Version) bool {
	r := o.PeerService.Log
	return low.Minor() == lastMixedMinor && target.Minor() > lastMixedMinor && (!r.Readable || r.ClusterID != o.clusterID())
}

func (o *Observed) clusterID() string { return strconv.FormatUint(o.Etcd.ClusterID, 16) }

// prepareLog returns what must be done and waited for before a member may run 3.7.
func (o *Observed) prepareLog() Plan {
	plan := wait(recheckQuorum, "PreparingLog",
		"members of 3.7 cannot read what members before 3.6 have written to the log: it is led past that first",
		"nothing, unless it lasts; every member must serve")
	if !o.Etcd.Linearizable {
		return plan
	}
	var ahead uint64
	behind := ^uint64(0)
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if has := newest(parse(m.Version), o.pod(m.Name).version()); has != nil && has.Minor() > lastMixedMinor {
			continue // it was let on before
		}
		if m.Health != Healthy || m.RaftApplied == 0 {
			return plan
		}
		ahead, behind = max(ahead, m.RaftIndex), min(behind, m.RaftApplied)
	}
	id, r := o.clusterID(), o.PeerService.Log
	goal := r.Index + max(resources.SnapshotCount(o.Cluster), catchUpEntries) + logSlack
	switch {
	case r.ClusterID != id:
		plan.Actions = []Action{RecordLog{Log: LogRecord{ClusterID: id, Index: ahead}}}
	case behind >= goal:
		plan.Actions = []Action{RecordLog{Log: LogRecord{ClusterID: id, Index: r.Index, Readable: true}}}
	case ahead < goal:
		plan.Actions = []Action{PadLog{Entries: int(min(goal-ahead, padStep))}}
		plan.RequeueAfter = recheckNow
	}
	return plan
}

// bornReadable is the record of a cluster whose seed has just answered, if that has never
// been of a version whose log 3.7 cannot read.
func (o *Observed) bornReadable() LogRecord {
	if low := o.lowest(); low != nil && low.Minor() >= lastMixedMinor {
		return LogRecord{ClusterID: o.clusterID(), Readable: true}
	}
	return LogRecord{}
}
