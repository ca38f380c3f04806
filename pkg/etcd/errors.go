// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// Why a call did not succeed. errors.Is finds exactly one of these in an error of
// this package.
var (
	// ErrUnavailable: no member that could respond was reached.
	ErrUnavailable = errors.New("etcd is not reachable")
	// ErrNoQuorum: a voter was reached, and there is no leader or no majority.
	ErrNoQuorum = errors.New("etcd has no quorum")
	// ErrTimeout: the call was sent and no response came in time.
	ErrTimeout = errors.New("etcd did not respond in time")
	// ErrClosed: the pool was closed.
	ErrClosed = errors.New("the pool of connections is closed")

	// ErrDenied: the certificate may not do that.
	ErrDenied = errors.New("etcd denied permission")
	// ErrLearner: the member is a learner and does not serve this request.
	ErrLearner = errors.New("etcd member is a learner")
	// ErrLearnerNotReady: the learner has not caught up with the leader yet.
	ErrLearnerNotReady = errors.New("etcd learner has not caught up")
	// ErrNotLearner: the member that was to be promoted votes already.
	ErrNotLearner = errors.New("etcd member is no learner")
	// ErrTooManyLearners: another learner must be promoted or removed first.
	ErrTooManyLearners = errors.New("etcd has too many learners")
	// ErrMemberNotFound: the member is not in the list, or was removed before.
	ErrMemberNotFound = errors.New("etcd member not found")
	// ErrMemberExists: a member with this ID or peer URL is in the list.
	ErrMemberExists = errors.New("etcd member exists")
	// ErrUnhealthy: too few members have started or are connected for the change.
	ErrUnhealthy = errors.New("etcd is not healthy enough")
	// ErrVersionUndecided: the member knows no cluster version yet.
	ErrVersionUndecided = errors.New("etcd has not decided its cluster version")
	// ErrNotLeader: the member that was requested to hand over does not lead.
	ErrNotLeader = errors.New("etcd member is not the leader")
	// ErrBadTransferee: the member cannot become leader.
	ErrBadTransferee = errors.New("etcd member cannot become leader")
	// ErrCorrupt: the cluster has raised the alarm for inconsistent data.
	ErrCorrupt = errors.New("etcd data is corrupt")
	// ErrNoSpace: the database is over its quota, and only deletions are taken.
	ErrNoSpace = errors.New("etcd database is over its quota")
	// ErrOtherCluster: what responds at the address belongs to another cluster. Nothing was changed there.
	ErrOtherCluster = errors.New("a member of another etcd cluster responds at this address")
	// ErrOtherMember: another member than the expected one responds at the address.
	ErrOtherMember = errors.New("another etcd member responds at this address")
	// ErrOther: etcd rejected for a reason that has no name here.
	ErrOther = errors.New("etcd rejected the request")

	errBadEndpoint = errors.New("bad endpoint")
)

// kinds maps etcd's own catalogue of errors.
var kinds = []struct{ etcd, kind error }{
	{rpctypes.ErrNoLeader, ErrNoQuorum},
	{rpctypes.ErrLeaderChanged, ErrNoQuorum},
	{rpctypes.ErrTimeout, ErrNoQuorum},
	{rpctypes.ErrTimeoutDueToLeaderFail, ErrNoQuorum},
	{rpctypes.ErrTimeoutDueToConnectionLost, ErrNoQuorum},
	{rpctypes.ErrStopped, ErrUnavailable},
	{rpctypes.ErrPermissionDenied, ErrDenied},
	{rpctypes.ErrPermissionNotGranted, ErrDenied},
	{rpctypes.ErrInvalidAuthToken, ErrDenied},
	{rpctypes.ErrUserEmpty, ErrDenied},
	{rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner), ErrLearner},
	{rpctypes.ErrMemberLearnerNotReady, ErrLearnerNotReady},
	{rpctypes.ErrMemberNotLearner, ErrNotLearner},
	{rpctypes.ErrTooManyLearners, ErrTooManyLearners},
	{rpctypes.ErrMemberNotFound, ErrMemberNotFound},
	{rpctypes.ErrMemberExist, ErrMemberExists},
	{rpctypes.ErrPeerURLExist, ErrMemberExists},
	{rpctypes.ErrMemberNotEnoughStarted, ErrUnhealthy},
	{rpctypes.ErrUnhealthy, ErrUnhealthy},
	{rpctypes.ErrNotLeader, ErrNotLeader},
	{rpctypes.ErrBadLeaderTransferee, ErrBadTransferee},
	{rpctypes.ErrCorrupt, ErrCorrupt},
	{rpctypes.ErrNoSpace, ErrNoSpace},
}

// Error says which call failed and why.
type Error struct {
	// Op is what was tried, such as "promote".
	Op string
	// Member that got the request; empty if no member was found for it.
	Member string
	// Kind is one of the sentinels of this package.
	Kind error
	// Cause is what the call returned; it may be nil.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	at := ""
	if e.Member != "" {
		at = " at " + e.Member
	}
	switch {
	case e.Cause == nil:
		return fmt.Sprintf("%s%s: %v", e.Op, at, e.Kind)
	case errors.Is(e.Cause, e.Kind):
		return fmt.Sprintf("%s%s: %s", e.Op, at, untrusted.Text(e.Cause.Error()))
	default:
		return fmt.Sprintf("%s%s: %v: %s", e.Op, at, e.Kind, untrusted.Text(e.Cause.Error()))
	}
}

// Unwrap makes errors.Is and errors.As look at both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// IsRejected is true if etcd itself said no, so that a change certainly did not happen.
// After any other error of a change it may have happened, or happen yet.
func IsRejected(err error) bool {
	return isAny(err, ErrDenied, ErrLearner, ErrLearnerNotReady, ErrNotLearner, ErrTooManyLearners, ErrMemberNotFound,
		ErrMemberExists, ErrUnhealthy, ErrNotLeader, ErrBadTransferee, ErrOtherCluster, ErrOtherMember)
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// wrap turns what gRPC returned for a call at a member into an *Error; nil stays nil.
func wrap(op, member string, err error) error {
	if err == nil {
		return nil
	}
	cause := rpctypes.Error(err)
	return &Error{Op: op, Member: member, Kind: kindOf(cause), Cause: cause}
}

func kindOf(err error) error {
	for _, own := range []error{ErrOtherCluster, ErrOtherMember, ErrTooLarge} {
		if errors.Is(err, own) {
			return own
		}
	}
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message larger than max") {
		return ErrTooLarge // gRPC has read no more than the size of the message
	}
	for _, k := range kinds {
		if errors.Is(err, k.etcd) {
			return k.kind
		}
	}
	if errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return ErrTimeout
	}
	// What is not in etcd's catalogue comes from the transport.
	switch status.Code(err) {
	case codes.Unavailable:
		return ErrUnavailable
	case codes.DeadlineExceeded, codes.Canceled:
		return ErrTimeout
	case codes.PermissionDenied, codes.Unauthenticated:
		return ErrDenied
	default:
		return ErrOther
	}
}
