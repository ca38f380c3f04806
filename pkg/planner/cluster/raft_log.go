// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// logSlack is for snapshots that are made beside the log, and for what an earlier leader
	// had not committed yet.
	logSlack = 500
	// padStep is how many entries are added between two looks.
	padStep = 2000
)

// prepareLog returns what must be done and waited for before a member that runs low may
// run the next minor version.
func prepareLog(o *Observed, low *version.Version) Plan {
	minor := low.Minor()
	plan := wait(recheckQuorum, ReasonPreparingLog,
		fmt.Sprintf("members of 3.%d cannot read log entries of members before 3.%d: the log is advanced past them first", minor+1, minor),
		noActionNeeded+" Every member must serve."+remedyOfNewFlag(minor))
	if !o.Etcd.Linearizable {
		return plan
	}
	var ahead uint64
	behind := ^uint64(0)
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if has := newest(parse(m.Version), podVersion(podByName(o.Pods, m.Name))); has != nil && has.Minor() > minor {
			continue // it took the step before
		}
		if m.Health != Healthy || m.RaftApplied == 0 {
			return plan
		}
		ahead, behind = max(ahead, m.RaftIndex), min(behind, m.RaftApplied)
	}
	id, r := hexID(o.Etcd.ClusterID), o.Record.Log
	goal := r.Index + logDistance(o, minor)
	switch {
	case r.ClusterID != id || r.Minor < minor:
		plan.Actions = []Action{RecordLog{Log: resources.LogRecord{ClusterID: id, Minor: minor, Index: ahead}}}
	case behind >= goal:
		plan.Actions = []Action{RecordLog{Log: resources.LogRecord{ClusterID: id, Minor: minor, Index: r.Index, Readable: true}}}
	case ahead < goal:
		plan.Actions = []Action{ForceSnapshot{Entries: int(min(goal-ahead, padStep))}}
		plan.RequeueAfter = recheckNow
	}
	return plan
}

// remedyOfNewFlag is for a member that gets a declared flag before the declared version, and may end at it.
func remedyOfNewFlag(minor uint) string {
	return fmt.Sprintf(" If one ends at a flag that 3.%d does not know, declare the version and that flag again when the cluster serves without them.", minor)
}

// logDistance is how far the log must go on until no member needs the entries before. Members that run keep as much
// as was declared when they started.
func logDistance(o *Observed, minor uint) uint64 {
	distance := distanceWith(resources.LogOptionsOf(o.Cluster), minor)
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !isGone(p) {
			distance = max(distance, distanceWith(p.Log, minor))
		}
	}
	return distance
}

// distanceWith is the distance for members with these options. From 3.6 on a leader keeps dropping what it need not keep in
// memory; older versions do so when they make a snapshot.
func distanceWith(options resources.LogOptions, minor uint) uint64 {
	snapshot, catchUp := options.Entries(minor)
	if minor < lastBarredMinor {
		return snapshot + catchUp + logSlack
	}
	return max(snapshot, catchUp) + logSlack
}
