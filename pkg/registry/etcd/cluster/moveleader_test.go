// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// TestMoveError checks which errors of etcd are conflicts: clients retry only a conflict at once.
func TestMoveError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		is   func(error) bool
	}{
		{"timeout of etcd is a timeout", etcd.ErrTimeout, apierrors.IsTimeout},
		{"unreachable member is service unavailable", etcd.ErrUnavailable, apierrors.IsServiceUnavailable},
		{"lost quorum is a conflict", etcd.ErrNoQuorum, apierrors.IsConflict},
		{"changed leader is a conflict", etcd.ErrNotLeader, apierrors.IsConflict},
		{"target that does not vote any more is a conflict", etcd.ErrBadTransferee, apierrors.IsConflict},
		{"right that etcd denies is an internal error", etcd.ErrDenied, apierrors.IsInternalError},
		{"unknown error is an internal error", errors.New("broken"), apierrors.IsInternalError},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if err := moveError("a", fmt.Errorf("move leader: %w", test.err)); !test.is(err) {
				t.Errorf("got %#v", err)
			}
		})
	}
}
