// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"
)

// Endpoint is where one member listens for clients.
type Endpoint struct {
	// Name of the member.
	Name string
	// URL of its client listener, http or https.
	URL string
	// Address, if not empty, is the host:port that is dialed instead of the one in
	// URL. The certificate is still checked against the host of URL. An address of a
	// pod works before its DNS name does, whose absence resolvers remember.
	Address string
	// MemberID, if not 0, is the ID of the member. A response of any other one is ErrOtherMember.
	MemberID uint64
	// Status, if not nil, is the status that the member has just reported. The member list is
	// then read without asking all members for their status once more.
	Status *MemberHealth
	// TLS and TLSIdentity, if TLS is not nil, are used instead of those of the target: a member
	// that another program runs may accept other certificates.
	TLS         *tls.Config
	TLSIdentity string
}

// Target is how to reach the members of one cluster.
type Target struct {
	Endpoints []Endpoint
	// ClusterIDs are the IDs of the cluster; more than one while its data moves to new members. A response of
	// any other cluster is ErrOtherCluster, and no request that could change something is sent there. The
	// address of a pod that has ended may be that of a member of another cluster by now. Empty: the
	// ID is not known, and any cluster counts.
	ClusterIDs []uint64
	// TLS is used for https endpoints. It must not be changed after it was used.
	TLS *tls.Config
	// TLSIdentity names the certificates in TLS, such as the resource version of the
	// secret that they come from. Connections are shared by targets with the same
	// identity; if it is empty, by targets with the same TLS pointer.
	TLSIdentity string
}

// Member is one entry of etcd's member list.
type Member struct {
	ID uint64
	// Name is empty until the member has started for the first time.
	Name       string
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
}

// Membership is a member list that a quorum confirmed.
type Membership struct {
	ClusterID uint64
	// Members in the order of their IDs.
	Members []Member
	// From is the ID of the member that responded.
	From uint64
	// RaftTerm in which it responded.
	RaftTerm uint64
}

// MemberHealth is what one member says about itself, without asking the others.
type MemberHealth struct {
	ID        uint64
	ClusterID uint64
	// Leader is the ID of the leader that the member follows, its own if it leads,
	// and 0 if it knows none.
	Leader  uint64
	Version string
	// DBSize, DBSizeInUse and Quota are bytes. Quota is 0 before 3.6.
	DBSize      int64
	DBSizeInUse int64
	Quota       int64
	RaftTerm    uint64
	// RaftIndex is committed; RaftApplied is what the member has applied of it, and 0
	// before 3.4, which does not tell.
	RaftIndex   uint64
	RaftApplied uint64
	Learner     bool
	// Alarms of the whole cluster, as far as this member has heard.
	Alarms []Alarm
	// Errors that the member reports, in its own words, for a reader.
	Errors []string
	// CertificateExpiry is when the certificate ends that the member showed; zero
	// without TLS.
	CertificateExpiry time.Time
}

// Progress is how far the member has come, to compare members by: what it has applied, and
// where it does not tell that, what it knows to be committed.
func (h *MemberHealth) Progress() uint64 {
	if h.RaftApplied == 0 {
		return h.RaftIndex
	}
	return h.RaftApplied
}

// hasAlarm is true if a member of the cluster has raised an alarm of this type.
func (h *MemberHealth) hasAlarm(t AlarmType) bool {
	return slices.ContainsFunc(h.Alarms, func(a Alarm) bool { return a.Type == t })
}

// AlarmType is what an alarm is about.
type AlarmType string

// Values of AlarmType. etcd may know others.
const (
	AlarmNoSpace AlarmType = "NOSPACE"
	AlarmCorrupt AlarmType = "CORRUPT"
)

// Alarm is raised by a member and stops writes or reads of the whole cluster.
type Alarm struct {
	// MemberID is the member that raised it.
	MemberID uint64
	Type     AlarmType
}

// String returns the alarm for a reader.
func (a Alarm) String() string { return fmt.Sprintf("%s (raised by %x)", a.Type, a.MemberID) }

// StatusResult is the response of one member: Health, or why there is none.
type StatusResult struct {
	Health MemberHealth
	Err    error
}
