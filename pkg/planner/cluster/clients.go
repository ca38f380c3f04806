// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// Client is what is known of the Secret of a client in spec.clients, or of a client that was
// removed from it.
type Client struct {
	// Certificate is that of the client. In a cluster without TLS it says only whether the
	// Secret exists and is owned by the cluster. State NotOwned also means a Secret
	// of another type.
	certificates.Certificate

	// Name of the client; empty if it was removed.
	Name string
	// UID of the Secret; empty if there is none.
	UID string
	// EntriesMatch is true if everything in the Secret but the certificate is as declared.
	EntriesMatch bool
}

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
func (o *Observed) keepClients() []Action {
	facts := o.certificateFacts()
	if facts.Deleting {
		return nil // garbage collection deletes them
	}
	var actions []Action
	for i := range o.Clients {
		c := &o.Clients[i]
		switch {
		case !o.isRecorded(c):
			// A Secret that no status lists would not be found when its client is removed:
			// the controller cannot list Secrets.
		case c.Name == "":
			if !facts.Paused && c.MayExist() && c.UID != "" {
				actions = append(actions, DeleteClientSecret{Name: c.Secret, UID: c.UID})
			}
		default:
			if change, due := c.change(facts); due {
				actions = append(actions, WriteClientSecret{Client: c.Name, Change: change})
			}
		}
	}
	return actions
}

// change returns what of the Secret of a client is to be written now.
func (c *Client) change(facts *certificates.Observed) (certificates.Change, bool) {
	switch {
	case facts.Hibernated || c.State == certificates.Unknown || c.State == certificates.NotOwned:
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

// isRecorded is true if the status lists the Secret of a client.
func (o *Observed) isRecorded(c *Client) bool {
	return slices.ContainsFunc(o.Cluster.Status.Clients, func(s v1beta2.ClientStatus) bool { return s.SecretName == c.Secret })
}

// hasUnrecordedClients is true if the status is about to list another Secret, which is
// created in the next step.
func (o *Observed) hasUnrecordedClients() bool {
	return slices.ContainsFunc(o.Clients, func(c Client) bool { return !o.isRecorded(&c) })
}
