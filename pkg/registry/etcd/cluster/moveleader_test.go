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

// TestErrorsOfAMove: clients try a conflict again at once, and nothing else.
func TestErrorsOfAMove(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		is   func(error) bool
	}{
		{"a member that does not respond in time", etcd.ErrTimeout, apierrors.IsTimeout},
		{"a member that cannot be reached", etcd.ErrUnavailable, apierrors.IsServiceUnavailable},
		{"no quorum", etcd.ErrNoQuorum, apierrors.IsConflict},
		{"another leader meanwhile", etcd.ErrNotLeader, apierrors.IsConflict},
		{"a target that does not vote any more", etcd.ErrBadTransferee, apierrors.IsConflict},
		{"a right that etcd denies", etcd.ErrDenied, apierrors.IsInternalError},
		{"anything else", errors.New("broken"), apierrors.IsInternalError},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if err := moveError("a", fmt.Errorf("move leader: %w", test.err)); !test.is(err) {
				t.Errorf("got %#v", err)
			}
		})
	}
}
