// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panels

// Event is what happens to the cluster in a run.
type Event string

// Values of Event.
const (
	Upgrade    Event = "upgrade"
	Backup     Event = "backup"
	QuorumLoss Event = "quorumLoss"
)

// Events are all events of a run, in their order.
var Events = []Event{Upgrade, Backup, QuorumLoss}

// exception says at which events a query has data, and why not at the others.
type exception struct {
	events []Event
	why    string
}

// exceptions are the queries without data at some event. Every other query must have data at
// each event.
var exceptions = map[string]exception{}

// fact is a series that a query must show at an event.
type fact struct {
	query  string
	event  Event
	labels map[string]string
}

// facts are what a reader must see of the events.
var facts = []fact{}
