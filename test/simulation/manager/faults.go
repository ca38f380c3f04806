// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

var (
	errConnection = errors.New("connection reset by peer")
	errQuota      = errors.New("exceeded quota: full")
)

// CallFault is what goes wrong with one call of a controller.
type CallFault int

// Values of CallFault.
const (
	// CrashBefore and CrashAfter end the process before the call is sent, or after it was
	// carried out and before the response is read. CrashUnderway ends it when the call was
	// sent and is carried out a moment later; CrashReply after the response was read and
	// before the next call.
	CrashBefore CallFault = iota
	CrashAfter
	CrashUnderway
	CrashReply
	// PauseBefore and PauseAfter stop the process for a while, as a long garbage
	// collection or a frozen machine does; everything else goes on.
	PauseBefore
	PauseAfter
	// FailBefore is an error of a call that was not carried out, LoseReply one of a
	// call that was, and Late one of a call that is carried out a moment later.
	FailBefore
	LoseReply
	Late
	// Conflict rejects the call because of its resource version, even if that is current.
	Conflict
	CallFaults
)

var callFaultNames = [CallFaults]string{
	"crash before a call", "crash after a call", "crash with a call under way", "crash after a reply", "pause before a call", "pause after a call",
	"failed call", "lost reply", "late call", "conflict",
}

// Fault is a fault that waits for its call.
type Fault struct {
	Fault CallFault
	// Skip is how many calls go by before it.
	Skip  int
	Pause time.Duration
	// Writes is true if only calls that change something count.
	Writes bool
}

// crashed is what a controller panics with when its process ends.
type crashed struct{}

// deliverLate carries out a call a moment after its controller has given it up.
func deliverLate[T any](w *World, do func() (T, error)) {
	w.After(w.Dice.Between(10*time.Millisecond, 2*time.Second), func() {
		w.Disturb()
		w.Late = true
		_, _ = do()
		w.Late = false
	})
}

// nextFault returns the fault that is due for this call, or nil.
func (c *Manager) nextFault(write bool) *Fault {
	for i, a := range c.Faults {
		if a.Writes && !write {
			continue
		}
		if a.Skip > 0 {
			a.Skip--
			continue
		}
		c.Faults = append(c.Faults[:i:i], c.Faults[i+1:]...)
		return a
	}
	return nil
}

// failure is an error that leaves open whether the call was carried out.
func (c *Manager) failure(toEtcd bool, name string) error {
	if toEtcd {
		return &etcd.Error{Op: name, Kind: timeline.Pick(c.W.Dice, etcd.ErrTimeout, etcd.ErrUnavailable, etcd.ErrNoQuorum)}
	}
	if strings.HasPrefix(name, "create pods ") && c.W.Dice.Chance(25) {
		return apierrors.NewForbidden(kubernetes.KindPod.Resource(), name, errQuota)
	}
	return timeline.Pick[error](c.W.Dice,
		apierrors.NewInternalError(errConnection),
		apierrors.NewTimeoutError("request did not complete within requested timeout", 1),
		apierrors.NewTooManyRequestsError("slow down"),
		fmt.Errorf("%s: %w", name, context.DeadlineExceeded))
}
