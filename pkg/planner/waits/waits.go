// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waits holds what is the same for every wait of the controller: each has a reason, a bound
// after which its object is Stalled, and a remedy. The packages of the planner hold the tables.
package waits

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// Bounds of waits.
const (
	// Soon is for what only a person or another program changes. Manifests are applied one after the
	// other, and objects of a deleted cluster with the same name no longer exist after that time.
	Soon = time.Minute
	// Late is for what should come by itself, such as a pod that starts. It is the default of a
	// Deployment's progressDeadlineSeconds.
	Late = 10 * time.Minute
	// Transfer is for data that is copied, and for what waits for a copy.
	Transfer = 2 * time.Hour

	// slowest is the rate in bytes per second that a copy of a database has at least. A copy that is
	// not seen to advance gets as much time as it may take at that rate.
	slowest = 2 << 20
)

// Ender is what ends a wait.
type Ender string

// Values of Ender.
const (
	Controller Ender = "the controller"
	Kubernetes Ender = "Kubernetes"
	Etcd       Ender = "etcd"
	User       Ender = "a user"
)

// Row says of one reason what the controller waits for, and what follows.
type Row struct {
	// For is what the controller waits for.
	For string
	// EndedBy is what ends the wait in the usual case.
	EndedBy Ender
	// Bound is how long the wait may last before the object is Stalled.
	Bound time.Duration
	// Copies is true if data is copied: the bound grows with the database.
	Copies bool
	// Remedy is what a user can do once the object is Stalled. A wait whose own remedy says more keeps it.
	Remedy string
}

// New returns a row.
func New(what string, endedBy Ender, bound time.Duration, remedy string) Row {
	return Row{For: what, EndedBy: endedBy, Bound: bound, Remedy: remedy}
}

// Copy returns a row about data that is copied.
func Copy(what string, endedBy Ender, bound time.Duration, remedy string) Row {
	return Row{For: what, EndedBy: endedBy, Bound: bound, Copies: true, Remedy: remedy}
}

// Table holds the rows by reason.
type Table map[string]Row

// Reasons lists the reasons in alphabetical order.
func (t Table) Reasons() []string { return slices.Sorted(maps.Keys(t)) }

// Patience is the bound of a row while the largest database of a member has size bytes.
func (r Row) Patience(size int64) time.Duration {
	if !r.Copies {
		return r.Bound
	}
	return r.Bound + CopyTime(size)
}

// CopyTime is how long a copy of size bytes may take.
func CopyTime(size int64) time.Duration { return time.Duration(size/slowest) * time.Second }

// RemedyOf returns the remedy of a wait. A wait that has lasted too long does not end by itself, so
// its remedy no longer says that no action is needed.
func (r Row) RemedyOf(remedy string, tooLong bool) string {
	if !tooLong {
		return remedy
	}
	if more := strings.TrimSpace(strings.TrimPrefix(remedy, diagnosis.NoActionYet)); more != "" {
		return more
	}
	return r.Remedy
}
