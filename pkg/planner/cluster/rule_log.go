// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Some versions end as soon as they come upon what older ones have written to the log: 3.6
// upon requests of members before 3.5, which each question for their health leaves there,
// and 3.7 upon those of members before 3.6, from when they start and when the version of
// the cluster changes. They come upon them on their own disk, where they read the log from
// the last snapshot on, and in what a leader sends to a member that joins or lags. So
// before the first member may take such a step the log must have gone on, without such
// requests, for as long as it takes until every member has made a snapshot behind them and
// no leader keeps them in memory. A quiet cluster is helped along with entries that change
// nothing.
const (
	firstBarredMinor, lastBarredMinor = 5, 6
	// catchUpEntries are what a leader keeps in memory for members that lag.
	catchUpEntries = 5000
	// logSlack is for snapshots that are made beside the log, and for what an earlier leader
	// had not committed yet.
	logSlack = 500
	// padStep is how many entries are added between two looks.
	padStep = 2000
)

// LogRecord says who has written the log of etcd. It stands on the peer service.
type LogRecord struct {
	// ClusterID in hexadecimal of the etcd that it is about.
	ClusterID string
	// Minor is the oldest minor version of the members that have written what is behind
	// Index.
	Minor uint
	Index uint64
	// Readable is true once no member needs anything before Index.
	Readable bool
}

// logBars is true if members that run low must not be joined by ones that run target yet.
func (o *Observed) logBars(low, target *version.Version) bool {
	if target.Minor() <= low.Minor() || low.Minor() < firstBarredMinor || low.Minor() > lastBarredMinor {
		return false
	}
	r := o.PeerService.Log
	return !r.Readable || r.Minor < low.Minor() || r.ClusterID != o.clusterID()
}

func (o *Observed) clusterID() string { return strconv.FormatUint(o.Etcd.ClusterID, 16) }

// prepareLog returns what must be done and waited for before a member that runs low may
// run the next minor version.
func (o *Observed) prepareLog(low *version.Version) Plan {
	minor := low.Minor()
	plan := wait(recheckQuorum, "PreparingLog",
		fmt.Sprintf("members of 3.%d cannot read what members before 3.%d have written to the log: it is led past that first", minor+1, minor),
		"nothing, unless it lasts; every member must serve")
	if !o.Etcd.Linearizable {
		return plan
	}
	var ahead uint64
	behind := ^uint64(0)
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if has := newest(parse(m.Version), o.pod(m.Name).version()); has != nil && has.Minor() > minor {
			continue // it was let on before
		}
		if m.Health != Healthy || m.RaftApplied == 0 {
			return plan
		}
		ahead, behind = max(ahead, m.RaftIndex), min(behind, m.RaftApplied)
	}
	id, r := o.clusterID(), o.PeerService.Log
	goal := r.Index + o.logDistance(minor)
	switch {
	case r.ClusterID != id || r.Minor < minor:
		plan.Actions = []Action{RecordLog{Log: LogRecord{ClusterID: id, Minor: minor, Index: ahead}}}
	case behind >= goal:
		plan.Actions = []Action{RecordLog{Log: LogRecord{ClusterID: id, Minor: minor, Index: r.Index, Readable: true}}}
	case ahead < goal:
		plan.Actions = []Action{PadLog{Entries: int(min(goal-ahead, padStep))}}
		plan.RequeueAfter = recheckNow
	}
	return plan
}

// logDistance is how far the log must go on until nobody needs what is before. From 3.6 on
// a leader drops what it need not keep in memory all the time; before it does when it
// makes a snapshot.
func (o *Observed) logDistance(minor uint) uint64 {
	count := resources.SnapshotCount(o.Cluster, minor)
	if minor < lastBarredMinor {
		return count + catchUpEntries + logSlack
	}
	return max(count, catchUpEntries) + logSlack
}

// bornReadable is the record of a cluster whose seed has just answered, if there is a
// version that could come upon something in its log.
func (o *Observed) bornReadable() LogRecord {
	if low := o.lowest(); low != nil && low.Minor() >= firstBarredMinor {
		return LogRecord{ClusterID: o.clusterID(), Minor: low.Minor(), Readable: true}
	}
	return LogRecord{}
}
