// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrorsAreMapped(t *testing.T) {
	t.Parallel()
	all := []error{
		ErrUnavailable, ErrNoQuorum, ErrTimeout, ErrClosed, ErrDenied, ErrLearner, ErrLearnerNotReady, ErrNotLearner, ErrTooManyLearners,
		ErrMemberNotFound, ErrMemberExists, ErrUnhealthy, ErrNotLeader, ErrBadTransferee, ErrCorrupt, ErrOther,
	}
	for _, tc := range []struct {
		err, want error
		rejected  bool
	}{
		{rpctypes.ErrGRPCNoLeader, ErrNoQuorum, false},
		{rpctypes.ErrGRPCLeaderChanged, ErrNoQuorum, false},
		{rpctypes.ErrGRPCTimeout, ErrNoQuorum, false},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, ErrNoQuorum, false},
		{rpctypes.ErrGRPCStopped, ErrUnavailable, false},
		{rpctypes.ErrGRPCNotSupportedForLearner, ErrLearner, true},
		{rpctypes.ErrGRPCLearnerNotReady, ErrLearnerNotReady, true},
		{rpctypes.ErrGRPCMemberNotLearner, ErrNotLearner, true},
		{rpctypes.ErrGRPCTooManyLearners, ErrTooManyLearners, true},
		{rpctypes.ErrGRPCMemberNotFound, ErrMemberNotFound, true},
		{rpctypes.ErrGRPCMemberExist, ErrMemberExists, true},
		{rpctypes.ErrGRPCPeerURLExist, ErrMemberExists, true},
		{rpctypes.ErrGRPCUnhealthy, ErrUnhealthy, true},
		// Servers send this error without its code.
		{status.Error(codes.Unknown, rpctypes.ErrMemberNotEnoughStarted.Error()), ErrUnhealthy, true},
		{rpctypes.ErrGRPCNotLeader, ErrNotLeader, true},
		{rpctypes.ErrGRPCBadLeaderTransferee, ErrBadTransferee, true},
		{rpctypes.ErrGRPCPermissionDenied, ErrDenied, true},
		{rpctypes.ErrGRPCCorrupt, ErrCorrupt, false},
		{rpctypes.ErrGRPCMemberBadURLs, ErrOther, false},
		{status.Error(codes.Unavailable, "connection refused"), ErrUnavailable, false},
		{status.Error(codes.DeadlineExceeded, "x"), ErrTimeout, false},
		{status.Error(codes.Canceled, "x"), ErrTimeout, false},
		{status.Error(codes.Unauthenticated, "x"), ErrDenied, true},
		{status.Error(codes.Internal, "x"), ErrOther, false},
		{context.DeadlineExceeded, ErrTimeout, false},
		{context.Canceled, ErrTimeout, false},
		{errors.New("x"), ErrOther, false},
		{ErrClosed, ErrClosed, false},
	} {
		got := fmt.Errorf("outer: %w", wrap("op", "m0", tc.err))
		for _, sentinel := range all {
			if errors.Is(got, sentinel) != errors.Is(tc.want, sentinel) {
				t.Errorf("%v: is %v", tc.err, sentinel)
			}
		}
		if IsRejected(got) != tc.rejected {
			t.Errorf("%v: refused %v", tc.err, IsRejected(got))
		}
		var e *Error
		if !errors.As(got, &e) || e.Op != "op" || e.Member != "m0" {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
	if wrap("op", "m0", nil) != nil || IsRejected(nil) || IsRejected(errors.New("x")) {
		t.Error("errors out of nothing")
	}
	if got := wrap("promote", "m0", rpctypes.ErrGRPCLearnerNotReady); !errors.Is(got, rpctypes.ErrMemberLearnerNotReady) {
		t.Errorf("%v does not unwrap to its cause", got)
	}
}
