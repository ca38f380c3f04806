// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// Etcd is what the members of etcd responded.
type Etcd struct {
	// Linearizable is true if a member list was read through a quorum. Nothing else
	// here may be used for a membership change if it is false.
	Linearizable bool
	// ClusterID is 0 if no member responded.
	ClusterID uint64
	// Unlisted is true if only learners responded, which give no member list away: their member IDs in the last status
	// told that ClusterID is that of this cluster. A recovery follows them. The record waits for a list.
	Unlisted bool
	// OtherClusterID is set if no member of the cluster responded, and a member of another etcd did. It never becomes
	// the ID of the cluster.
	OtherClusterID uint64
	// LearnerClusterID is that of a learner that the status does not name. A learner returns no member list, so its
	// response proves nothing and disproves nothing.
	LearnerClusterID uint64
	// Members in the order of their IDs. If Linearizable is false they are those of
	// the last status, with the present response of each.
	Members []Member
	// Err says why the list could not be read.
	Err string
	// Denied is true if a member has rejected the requests of the controller: etcd's own
	// authorization is on and does not know the controller.
	Denied bool
	// OfCluster is the namespace and the name of the other EtcdCluster that a member of the etcd to take over belongs to. The
	// list of that member tells; empty if there is none.
	OfCluster string
	// ListTooLarge is true if a member responded with a list that is larger than that of any real etcd.
	ListTooLarge bool
	// NoPlace says why the etcd to take over is not asked yet; empty if it is: other take-overs have all places.
	NoPlace string
	// Unasked is true if no member was queried: there is no usable client certificate.
	Unasked bool
	// VersionUndecided is true while a voter before 3.4 does not say a cluster version. It is
	// observed only while a pod waits for its membership.
	VersionUndecided bool
	// ClusterVersion is the newest cluster version that a voter says, such as 3.6.0. It is observed
	// only if NeedsClusterVersion, and is empty otherwise, or if none says one.
	ClusterVersion string
	// Disarms are the attempts of this controller to disarm the alarm NOSPACE of a member, by its ID. A
	// controller that restarts knows none.
	Disarms map[uint64]Disarms
}

// Disarms counts the attempts that may have disarmed one alarm. Last is the time of the last attempt, also of one that
// etcd did not get.
type Disarms struct {
	Count int
	Last  time.Time
}

// Health is whether a member serves.
type Health int

// Values of Health.
const (
	// Unknown: it could not be reached.
	Unknown Health = iota
	// Unhealthy: it responded that it cannot serve, or it runs and does not respond.
	Unhealthy
	// Healthy: it responded and knows a leader.
	Healthy
)

// Member is one member of the etcd cluster.
type Member struct {
	ID uint64
	// Name is that of its pod. An unmanaged member is named by its ID, because its own name may be
	// missing, anything, and that of another member. An old member of an etcd that the cluster takes over
	// keeps its own name if that is safe and unique.
	Name string
	// OwnName is what an unmanaged member calls itself; empty until it has started.
	OwnName string
	// Unmanaged is true if its peer URL is not one that this controller gives.
	Unmanaged bool
	// PeerURLs of an unmanaged member. Those of another member follow from its name.
	PeerURLs []string
	// Started is false until the member has published its name.
	Started bool
	Learner bool
	Health  Health
	// Reason and Message say why it is not healthy.
	Reason  Reason
	Message string
	// Leader is the ID of the leader that the member sees; 0 if none.
	Leader  uint64
	Version string
	DBSize  int64
	// Quota is the size in bytes at which it rejects writes, in its own words; 0 if it does not say.
	Quota       int64
	RaftIndex   uint64
	RaftApplied uint64
	// Alarms of all members, as far as this member has heard.
	Alarms []Alarm
	// CertificateVerified is true if the member was seen to show certificates that the present
	// CA signed. It is verified only while an older CA is trusted, too.
	CertificateVerified bool
	// View is the membership in its own response; nil if it did not respond, or if the list
	// was read through a quorum.
	View *View
}

// View is what a member says of the membership by itself, while no list can be read
// through a quorum.
type View struct {
	// Learner is true if it has not heard that it votes.
	Learner bool
	// Members is the list as far as it has applied the log; nil if it could not be read.
	// Learners give none away.
	Members []Member
}

// Types of the alarms with which etcd rejects writes.
const (
	alarmNoSpace = "NOSPACE"
	alarmCorrupt = "CORRUPT"
)

// Alarm stops writes of the whole cluster until it is disarmed. etcd raises it and never disarms it.
type Alarm struct {
	Type string
	// RaisedBy is the ID of the member that has raised it, which may have been removed since.
	RaisedBy uint64
}
