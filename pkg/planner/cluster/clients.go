// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// WriteClientSecret creates the Secret of a client, or writes what of it has changed.
type WriteClientSecret struct {
	Client string
	Change certificates.Change
}

// DeleteClientSecret deletes exactly the Secret with this UID. Its client was removed.
type DeleteClientSecret struct{ Name, UID string }

func (WriteClientSecret) action()  {}
func (DeleteClientSecret) action() {}

// keepClients returns the actions that keep the Secrets of clients as declared. They touch
// no member, so they go along with whatever else is done.
func keepClients(o *Observed) []Action {
	facts := certificateInput(o)
	if facts.Deleting {
		return nil // garbage collection deletes them
	}
	var actions []Action
	for i := range o.Clients {
		c := &o.Clients[i]
		switch {
		case !isReportedClient(o.Cluster.Status.Clients, c):
			// A Secret that no status lists would not be found when its client is removed:
			// the controller cannot list Secrets.
		case c.Name == "":
			if !facts.Paused && c.MayExist() && c.UID != "" {
				actions = append(actions, DeleteClientSecret{Name: c.Secret, UID: c.UID})
			}
		default:
			if change, due := clientChange(c, facts); due {
				actions = append(actions, WriteClientSecret{Client: c.Name, Change: change})
			}
		}
	}
	return actions
}

// clientChange returns what of the Secret of a client is to be written now.
func clientChange(c *Client, facts *certificates.Observed) (certificates.Change, bool) {
	switch {
	case facts.Hibernated || c.State == certificates.Unknown || c.State == certificates.NotOwned,
		facts.Paused && c.State == certificates.Missing: // it may be that of a client that was declared since
		return "", false
	case facts.CA == nil:
		return certificates.ChangeBundle, !facts.Paused && (c.State == certificates.Missing || !c.EntriesMatch)
	case !facts.HasUsableCA():
		return "", false
	}
	if change, due := facts.LeafChange(&c.Certificate); due || facts.Paused {
		return change, due
	}
	return certificates.ChangeBundle, !c.EntriesMatch
}
