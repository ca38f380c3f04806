// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var (
	errModified     = errors.New("the object has been modified")
	errPrecondition = errors.New("precondition failed")
	errConnection   = errors.New("connection reset by peer")
	errQuota        = errors.New("exceeded quota: full")
)

// CallFault is what goes wrong with one call of a controller.
type CallFault int

// Values of CallFault.
const (
	// CrashBefore and CrashAfter end the process before the call is sent, or after it
	// was carried out and before the answer is read. CrashUnderway ends it when the call
	// was sent and is carried out a moment later; CrashReply when the answer was taken in
	// and before the next call.
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
	// Conflict is a refusal because of a resource version, whatever the truth is.
	Conflict
	callFaults
)

var callFaultNames = [callFaults]string{
	"crash before a call", "crash after a call", "crash with a call under way", "crash after a reply", "pause before a call", "pause after a call",
	"failed call", "lost reply", "late call", "conflict",
}

// armed is a fault that waits for its call.
type armed struct {
	fault CallFault
	// skip is how many calls go by before it.
	skip  int
	pause time.Duration
	// writes is true if only calls that change something count.
	writes bool
}

// crashed is what a controller panics with when its process ends.
type crashed struct{}

// call carries out one call of the controller, or does to it what a fault says. do
// must not keep anything from before the call: time passes before it is run.
func call[T any](ctx context.Context, c *manager, name string, write, toEtcd bool, do func() (T, error)) (T, error) {
	var none T
	w := c.w
	if c.ending {
		panic(crashed{})
	}
	deadline := c.deadlineOf(ctx)
	w.advance(w.dice.between(time.Millisecond, 6*time.Millisecond))
	fault := c.nextFault(write)
	if due := w.tour.next(c, name, write); due != nil {
		fault = due
	}
	if fault != nil {
		w.stats.fault(callFaultNames[fault.fault])
		w.trace("%s %s: %s", c.name, name, callFaultNames[fault.fault])
		switch fault.fault {
		case CrashBefore:
			panic(crashed{})
		case PauseBefore:
			w.disturb() // much may change meanwhile that is too late to notice
			w.advance(fault.pause)
		case FailBefore:
			return none, c.failure(toEtcd, name)
		case Conflict:
			if write && !toEtcd {
				return none, apierrors.NewConflict(kindCluster.resource(), name, errModified)
			}
			return none, c.failure(toEtcd, name)
		case Late:
			if write {
				deliverLate(w, do)
			}
			return none, c.failure(toEtcd, name)
		case CrashUnderway:
			if write {
				deliverLate(w, do)
			}
			panic(crashed{})
		case CrashAfter, CrashReply, PauseAfter, LoseReply, callFaults:
		}
	}
	if c.dead {
		panic(crashed{}) // the process ended while it was paused
	}
	if deadline > 0 && w.now > deadline {
		return none, fmt.Errorf("%s: %w", name, context.DeadlineExceeded)
	}
	result, err := c.carryOut(name, write, func() (any, error) { return do() })
	if fault != nil {
		switch fault.fault {
		case CrashAfter:
			panic(crashed{})
		case CrashReply:
			c.ending = true
		case PauseAfter:
			w.advance(fault.pause)
		case LoseReply:
			return none, c.failure(toEtcd, name)
		case CrashBefore, CrashUnderway, PauseBefore, FailBefore, Conflict, Late, callFaults:
		}
	}
	if c.dead {
		panic(crashed{})
	}
	value, _ := result.(T)
	return value, err
}

// deliverLate carries out a call a moment after its controller has given it up.
func deliverLate[T any](w *World, do func() (T, error)) {
	w.after(w.dice.between(10*time.Millisecond, 2*time.Second), func() {
		w.disturb()
		w.checks.late = true
		_, _ = do()
		w.checks.late = false
	})
}

// carryOut runs the call and lets the checks look at what it did.
func (c *manager) carryOut(name string, write bool, do func() (any, error)) (any, error) {
	if !write {
		return do()
	}
	c.w.stats.Writes++
	c.writes++
	c.w.checks.before(c, name)
	result, err := do()
	if err != nil {
		c.w.trace("%s %s: %v", c.name, name, err)
	} else {
		c.w.trace("%s %s", c.name, name)
	}
	c.w.checks.after(c, name)
	return result, err
}

// nextFault returns the fault that is due for this call, or nil.
func (c *manager) nextFault(write bool) *armed {
	for i, a := range c.armed {
		if a.writes && !write {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		c.armed = append(c.armed[:i:i], c.armed[i+1:]...)
		return a
	}
	return nil
}

// failure is an error that says nothing about whether the call was carried out.
func (c *manager) failure(toEtcd bool, name string) error {
	if toEtcd {
		return &etcd.Error{Op: name, Kind: pick(c.w.dice, etcd.ErrTimeout, etcd.ErrUnavailable, etcd.ErrNoQuorum)}
	}
	if strings.HasPrefix(name, "create pods ") && c.w.dice.chance(25) {
		return apierrors.NewForbidden(kindPod.resource(), name, errQuota)
	}
	return pick[error](c.w.dice,
		apierrors.NewInternalError(errConnection),
		apierrors.NewTimeoutError("request did not complete within requested timeout", 1),
		apierrors.NewTooManyRequestsError("slow down"),
		fmt.Errorf("%s: %w", name, context.DeadlineExceeded))
}

// deadlineOf returns when a context ends in virtual time; 0: never. Contexts count in
// real time, in which nothing here takes long, so the rest that one has when it is
// first seen is what it had when it was made.
func (c *manager) deadlineOf(ctx context.Context) time.Duration {
	end, found := ctx.Deadline()
	if !found {
		return 0
	}
	if known, seen := c.deadlines[ctx]; seen {
		return known
	}
	const grain = 500 * time.Millisecond
	rest := (time.Until(end) + grain - 1).Truncate(grain)
	c.deadlines[ctx] = c.w.now + rest
	return c.deadlines[ctx]
}
