// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
)

// call carries out one call of the controller, or does to it what a fault says. do
// must not keep anything from before the call: time passes before it is run.
func call[T any](ctx context.Context, c *Manager, name string, write, toEtcd bool, do func() (T, error)) (T, error) {
	var none T
	w := c.W
	if c.ending {
		panic(crashed{})
	}
	deadline := c.deadlineOf(ctx)
	w.Advance(w.Dice.Between(time.Millisecond, 6*time.Millisecond))
	fault := c.nextFault(write)
	if w.OnCall != nil {
		if due := w.OnCall(c, name, write); due != nil {
			fault = due
		}
	}
	if fault != nil {
		w.Stats.Fault(callFaultNames[fault.Fault])
		w.Trace("%s %s: %s", c.Name, name, callFaultNames[fault.Fault])
		switch fault.Fault {
		case CrashBefore:
			panic(crashed{})
		case PauseBefore:
			w.Disturb() // much may change meanwhile that is too late to notice
			c.pause(fault.Pause)
		case FailBefore:
			return none, c.failure(toEtcd, name)
		case Conflict:
			if write && !toEtcd {
				return none, apierrors.NewConflict(kubernetes.KindCluster.Resource(), name, kubernetes.ErrModified)
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
		case CrashAfter, CrashReply, PauseAfter, LoseReply, CallFaults:
		}
	}
	if c.dead {
		panic(crashed{}) // the process ended while it was paused
	}
	if deadline > 0 && w.Elapsed > deadline {
		return none, fmt.Errorf("%s: %w", name, context.DeadlineExceeded)
	}
	result, err := c.carryOut(name, write, func() (any, error) { return do() })
	if fault != nil {
		switch fault.Fault {
		case CrashAfter:
			panic(crashed{})
		case CrashReply:
			c.ending = true
		case PauseAfter:
			c.pause(fault.Pause)
		case LoseReply:
			return none, c.failure(toEtcd, name)
		case CrashBefore, CrashUnderway, PauseBefore, FailBefore, Conflict, Late, CallFaults:
		}
	}
	if c.dead {
		panic(crashed{})
	}
	value, _ := result.(T)
	return value, err
}

// pause stops the process for a while.
func (c *Manager) pause(d time.Duration) {
	c.Paused = true
	c.W.Advance(d)
	c.Paused = false
}

// carryOut runs the call and lets the checks look at what it did.
func (c *Manager) carryOut(name string, write bool, do func() (any, error)) (any, error) {
	if !write {
		return do()
	}
	c.W.Stats.Writes++
	c.Writes++
	c.W.Observer.Before(c, name)
	result, err := do()
	if err != nil {
		c.W.Trace("%s %s: %v", c.Name, name, err)
	} else {
		c.W.Trace("%s %s", c.Name, name)
	}
	c.W.Observer.After(c, name)
	return result, err
}

// deadlineOf returns when a context ends in virtual time; 0: never. Contexts count in real
// time, in which nothing here takes long. So the time left when a context is first seen is
// the timeout with which the context was made.
func (c *Manager) deadlineOf(ctx context.Context) time.Duration {
	end, found := ctx.Deadline()
	if !found {
		return 0
	}
	if known, seen := c.deadlines[ctx]; seen {
		return known
	}
	const grain = 500 * time.Millisecond
	rest := (time.Until(end) + grain - 1).Truncate(grain)
	c.deadlines[ctx] = c.W.Elapsed + rest
	return c.deadlines[ctx]
}
