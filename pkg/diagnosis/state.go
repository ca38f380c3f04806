// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

// MemberState says how a member takes part in its cluster.
type MemberState string

// Values of MemberState.
const (
	// Joining: it does not vote yet.
	Joining MemberState = "Joining"
	// Serving: it responds and follows a leader.
	Serving MemberState = "Serving"
	// Lagging: it serves, and is noticeably behind the member that is furthest ahead.
	Lagging MemberState = "Lagging"
	// NotServing: it responds and knows no leader or completes no linearizable read, or does not respond from a pod that runs
	// and is not ready.
	NotServing MemberState = "NotServing"
	// Unreachable: it does not respond, and its pod is ready as far as Kubernetes knows, or
	// Kubernetes could not be read. The network may be the cause.
	Unreachable MemberState = "Unreachable"
	// Stopped: its container does not run, or its pod is about to end. It may come back,
	// because its pod or its PVC exists.
	Stopped MemberState = "Stopped"
	// ProvenAbsent: its pod has ended and its data no longer exists. It cannot come back.
	ProvenAbsent MemberState = "ProvenAbsent"
)

// Response says what a member said when it was probed.
type Response string

// Values of Response.
const (
	// NoResponse: it did not respond, or was not probed.
	NoResponse Response = ""
	// NoLeader: it responded and knows no leader.
	NoLeader Response = "NoLeader"
	// NoRead: it responded and did not complete a linearizable read, as with a disk that takes
	// no writes.
	NoRead Response = "NoRead"
	// FollowsLeader: it responded and follows a leader.
	FollowsLeader Response = "FollowsLeader"
)

// Signs are the facts that the state of a member is derived from.
type Signs struct {
	Vote     Vote
	Response Response
	// Lag is how many raft entries it is behind the member that is furthest ahead.
	Lag int64
	// Evidence of the end of its pod. Running and Ready say whether the etcd container of
	// the pod runs, and whether the pod is ready.
	Evidence       Evidence
	Running, Ready bool
	// HasPVC is true if a PVC with its data exists that is not being deleted.
	HasPVC bool
}

// StateOf derives the state of a member. What Kubernetes proves comes first, then the
// response of the member, then what Kubernetes reports about an unresponsive member's pod.
func StateOf(s Signs) MemberState {
	switch {
	case s.Evidence.HasEnded() && !s.HasPVC:
		return ProvenAbsent
	case s.Evidence.IsEnding():
		return Stopped
	case s.Vote == DoesNotVote:
		return Joining
	case s.Response == FollowsLeader && s.Lag >= NoticeableLag:
		return Lagging
	case s.Response == FollowsLeader:
		return Serving
	case s.Response == NoLeader, s.Response == NoRead:
		return NotServing
	case s.Evidence == PodUnknown:
		return Unreachable
	case !s.Running:
		return Stopped
	case !s.Ready:
		return NotServing
	default:
		return Unreachable
	}
}

// IsServing is true for a voter on which a quorum may count.
func (s MemberState) IsServing() bool { return s == Serving || s == Lagging }

// IsDown is true for a voter that does not serve and may come back.
func (s MemberState) IsDown() bool { return s == Stopped || s == NotServing }
