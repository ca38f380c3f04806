// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"
)

// Trace keeps a line of what happened.
func (t *Timeline) Trace(format string, args ...any) {
	if t.tracing {
		t.Log = append(t.Log, fmt.Sprintf("%9.3fs ", t.Elapsed.Seconds())+fmt.Sprintf(format, args...))
	}
}

// Disturb notes that something happened that a controller cannot know of.
func (t *Timeline) Disturb() {
	t.Disturbances++
	t.DisturbedAt = t.Elapsed
}

// Violation is a rule that was broken. The rules are those of docs/explanation/safety-rules.md.
type Violation struct {
	Rule string
	What string
	At   time.Duration
}

// String writes the violation for a reader.
func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Rule, v.At, v.What) }

// Violated notes that a rule was broken, unless one was broken before.
func (t *Timeline) Violated(rule, format string, args ...any) {
	if t.Violation != nil || t.Late {
		return
	}
	t.Violation = &Violation{Rule: rule, What: fmt.Sprintf(format, args...), At: t.Elapsed}
	t.Trace("VIOLATION %s", t.Violation)
}
