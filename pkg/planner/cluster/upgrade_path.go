// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Some versions end as soon as they read log entries of certain older versions:
//   - 3.6 ends at requests of members before 3.5. Each health check leaves one there.
//   - 3.7 ends at requests of members before 3.6. They are written when a member starts and
//     when the version of the cluster changes.
//
// A member reads such entries on its own disk, from the last snapshot on, and in what a
// leader sends to a member that joins or lags. So before a member may take such a step, the
// log must have grown without such requests. It has grown enough when every member has made
// a snapshot behind them and no leader keeps them in memory. In a quiet cluster the
// controller adds entries that change nothing.
const firstBarredMinor, lastBarredMinor = 5, 6

// upgradePath is what decides which version may follow the versions that the members run.
type upgradePath struct {
	memberVersions
	// log says which entries the log of the etcd with clusterID holds.
	log       resources.LogRecord
	clusterID uint64
	// decided is the cluster version; nil where it is not known.
	decided *version.Version
}

func upgradePathOf(o *Observed) upgradePath {
	return upgradePath{memberVersions: versionsOf(o), log: o.Record.Log, clusterID: clusterIDOf(o), decided: parse(o.Etcd.ClusterVersion)}
}

// clusterIDOf is the cluster ID that members respond with; the recorded one while none responds, such as the only member
// whose image cannot be pulled; 0 if neither is known.
func clusterIDOf(o *Observed) uint64 {
	recorded, err := strconv.ParseUint(o.Record.ClusterID, 16, 64)
	if o.Etcd.ClusterID != 0 || err != nil {
		return o.Etcd.ClusterID
	}
	return recorded
}

// NeedsClusterVersion is true if every member that responds runs a newer minor version than a member
// that joins now would. Whether that member may join depends on the members that do not respond. If
// they have run the newer version once, the cluster version has risen, and etcd lets no older member
// start. The versions that were last seen of these members do not show that; the cluster version does.
func NeedsClusterVersion(o *Observed) bool {
	joins := parse(upgradePathOf(o).joinVersion())
	if joins == nil {
		joins = parse(o.Cluster.Spec.Version)
	}
	var lowest *version.Version
	for i := range o.Etcd.Members {
		lowest = oldest(lowest, parse(o.Etcd.Members[i].Version))
	}
	return joins != nil && lowest != nil && lowest.Minor() > joins.Minor()
}

// joinVersion returns the version of a new member; empty for the declared version. If the other
// members may not step to the declared version yet, it is the lowest version that one of them runs.
// If the cluster cannot go back to the minor version of the declared one, it is the lowest version
// that one of them may run by now.
func (u upgradePath) joinVersion() string {
	target, low := parse(u.desired), u.lowestDecided()
	if target == nil || low == nil || u.canStep(low, target) {
		return ""
	}
	if u.isLeftBehind(target) {
		low = u.lowestPossible()
	}
	return u.pinned(low)
}

// lowestDecided is the lowest version that a member runs. Every member has run the minor version that
// etcd has decided on. So an observation of a lower version is outdated.
func (u upgradePath) lowestDecided() *version.Version {
	low := u.lowest()
	if low == nil || u.decided == nil || low.Minor() >= u.decided.Minor() {
		return low
	}
	return u.lowestPossible()
}

// lowestPossible is the lowest of the newest versions that the members may run by now.
func (u upgradePath) lowestPossible() *version.Version {
	var low *version.Version
	for i := range u.members {
		if newest := u.mayRun(&u.members[i]); newest != nil && (u.decided == nil || newest.Minor() >= u.decided.Minor()) {
			low = oldest(low, newest)
		}
	}
	return low
}

// isLeftBehind is true if the cluster cannot go back to the minor version of target: etcd has decided
// on a newer one, or no member keeps etcd from that decision.
func (u upgradePath) isLeftBehind(target *version.Version) bool {
	return u.decided != nil && u.decided.Minor() > target.Minor() || u.memberVersions.isLeftBehind(target)
}

// canStep is true if a member that runs target may join members that run low.
func (u upgradePath) canStep(low, target *version.Version) bool {
	return u.isSafeStep(low, target) && !u.logBars(low, target)
}

// isSafeStep is true if at most entries in the log keep a member that runs target from joining members that run low.
func (u upgradePath) isSafeStep(low, target *version.Version) bool {
	_, early := tooEarly(low, target)
	_, _, unsafe := u.unsafeReturn(target)
	return step(low, target) && !early && !unsafe && !u.isLeftBehind(target)
}

// logBars is true while the log may hold entries that a member that runs target cannot read, so
// that such a member must not join members that run low yet.
func (u upgradePath) logBars(low, target *version.Version) bool {
	if target.Minor() <= low.Minor() || low.Minor() < firstBarredMinor || low.Minor() > lastBarredMinor {
		return false
	}
	r := u.log
	return !r.Readable || r.Minor < low.Minor() || r.ClusterID != hexID(u.clusterID)
}

// pinned returns a version for CreatePod; empty if it is the declared one or unknown.
func (u upgradePath) pinned(v *version.Version) string {
	if v == nil || isSameVersion(u.desired, v) {
		return ""
	}
	return v.String()
}

// KnowsLearners is true if a member that joins the observed etcd is a learner first. Otherwise it votes
// from its addition on.
func KnowsLearners(o *Observed) bool { return upgradePathOf(o).knowsLearners() }

// knowsLearners is true if every member whose version is known knows learners, and
// one that joins now will.
func (u upgradePath) knowsLearners() bool {
	joins := u.joinVersion()
	if joins == "" {
		joins = u.desired
	}
	if !resources.HasLearners(joins) {
		return false
	}
	for i := range u.members {
		if v := u.runs(&u.members[i]); v != nil && !resources.HasLearners(v.String()) {
			return false
		}
	}
	return true
}

// recoveryVersion returns the version of etcd with which a recovery from a member starts.
func (u upgradePath) recoveryVersion(source *Member) string {
	if v := u.runs(source); v != nil {
		return v.String()
	}
	return u.desired
}

// logOfNewCluster is the record of a cluster whose bootstrap member has just responded. It is empty
// if every later version can read the log.
func (u upgradePath) logOfNewCluster() resources.LogRecord {
	if low := u.lowest(); low != nil && low.Minor() >= firstBarredMinor {
		return resources.LogRecord{ClusterID: hexID(u.clusterID), Minor: low.Minor(), Readable: true}
	}
	return resources.LogRecord{}
}
