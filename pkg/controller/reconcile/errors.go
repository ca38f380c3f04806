// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// ErrStale means that a live read contradicted the observation behind an action. The
	// action was not carried out; the next observation decides again.
	ErrStale = errors.New("the observation is stale")
	// ErrRejected means that Kubernetes rejected an object: a quota is used up, or a policy
	// forbids the object. A later try succeeds once the quota or the policy was changed.
	ErrRejected = errors.New("rejected by Kubernetes")
	// ErrNamespaceTerminating means that nothing can be created in the namespace any more.
	ErrNamespaceTerminating = errors.New("the namespace is being deleted")
	// ErrNotOwned means that an object of a name that is needed has another owner.
	ErrNotOwned = errors.New("the object has another owner")
)

// StaleRetry is when to observe again after a stale observation if no event comes before.
// An event should come; a cache that stands still must not make a reconciler spin.
const StaleRetry = time.Second

// StaleOnConflict marks the conflict of an update as ErrStale: another write came first.
func StaleOnConflict(err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// MarkTerminating marks an error from creating an object in a namespace that is being
// deleted as ErrNamespaceTerminating.
func MarkTerminating(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("%w: %w", ErrNamespaceTerminating, err)
	}
	return err
}

// MarkRejected marks an error from creating an object as ErrNamespaceTerminating or as
// ErrRejected, if it is one of the two.
func MarkRejected(err error) error {
	if err = MarkTerminating(err); IsRejection(err) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

// IsRejection is true for a response that stays the same until a quota, a policy or the
// object itself changes.
func IsRejection(err error) bool {
	return !errors.Is(err, ErrNamespaceTerminating) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}
