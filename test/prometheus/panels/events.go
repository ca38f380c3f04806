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

// exception says at which events a query must have data, and why not at the others.
type exception struct {
	events []Event
	why    string
}

// exceptions are the queries that may have no data at some event. Every other query must have data
// at each event.
var exceptions = map[string]exception{
	"cluster: Round trip between members, 99th percentile: {{pod}} to {{To}}": {[]Event{Backup}, "a member measures twice a minute, and a rate needs two measurements"},
	"cluster: annotation Changes: {{condition}}":                              {[]Event{Upgrade, QuorumLoss}, "a backup changes no member"},
	"cluster: annotation Operations: {{type}}":                                {nil, "no defragmentation, restart or replacement is requested"},

	"fleet: Clusters that do not serve":                             {[]Event{QuorumLoss}, "the cluster serves"},
	"fleet: Clusters that tolerate no failure":                      {[]Event{QuorumLoss}, "with three members that serve, one may fail"},
	"fleet: Clusters that wait":                                     {[]Event{QuorumLoss}, "the controller waits for nothing"},
	"fleet: Oldest backups":                                         {[]Event{Backup, QuorumLoss}, "there is no backup before the first"},
	"fleet: Backups that fail":                                      {nil, "no periodic backup is declared"},
	"operator: Backups and restores in an hour: backup {{reason}}":  {[]Event{QuorumLoss}, "the counter shows with the first backup, and an increase needs two measurements"},
	"operator: Backups and restores in an hour: restore {{result}}": {nil, "nothing is restored: the cluster recovers from a member"},
}

// fact is a series that a query must show at an event.
type fact struct {
	query  string
	event  Event
	labels map[string]string
}

// facts are what a reader must see of the events. The values $namespace, $cluster, $from and $to
// are those of the run.
var facts = []fact{
	{"cluster: Phase and conditions: {{phase}}", Upgrade, map[string]string{"phase": "Running"}},
	{"cluster: Phase and conditions: {{condition}} {{status}}", Upgrade, map[string]string{"condition": "Upgrading", "status": "True"}},
	{"cluster: annotation Changes: {{condition}}", Upgrade, map[string]string{"condition": "Upgrading"}},
	{"fleet: Clusters by version: {{version}}", Upgrade, map[string]string{"version": "$from"}},
	{"fleet: Clusters by version: {{version}}", Upgrade, map[string]string{"version": "$to"}},

	{"fleet: Oldest backups", Backup, map[string]string{"namespace": "$namespace", "name": "$cluster"}},
	{"operator: Backups and restores in an hour: backup {{reason}}", QuorumLoss, map[string]string{"reason": "Succeeded"}},

	{"cluster: Phase and conditions: {{phase}}", QuorumLoss, map[string]string{"phase": "Failed"}},
	{"cluster: Phase and conditions: {{condition}} {{status}}", QuorumLoss, map[string]string{"condition": "QuorumLost", "status": "True"}},
	{"cluster: Phase and conditions: {{condition}} {{status}}", QuorumLoss, map[string]string{"condition": "Available", "status": "False"}},
	{"cluster: annotation Changes: {{condition}}", QuorumLoss, map[string]string{"condition": "Recovering"}},
	{"fleet: Clusters that do not serve", QuorumLoss, map[string]string{"namespace": "$namespace", "name": "$cluster"}},
	{"fleet: Clusters that tolerate no failure", QuorumLoss, map[string]string{"namespace": "$namespace", "name": "$cluster"}},
	{"fleet: Clusters that wait", QuorumLoss, map[string]string{"namespace": "$namespace", "name": "$cluster"}},
}
