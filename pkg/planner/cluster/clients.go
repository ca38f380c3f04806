// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Client is what is known of the Secret of a client in spec.clients, or of a client that was
// removed from it.
type Client struct {
	// Certificate is that of the client. In a cluster without TLS it says only whether the
	// Secret exists and is owned by the cluster. State CertificateNotOwned also means a Secret
	// of another type.
	Certificate

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
	Change CertificateChange
}

// DeleteClientSecret deletes exactly the Secret with this UID. Its client was removed.
type DeleteClientSecret struct{ Name, UID string }

func (WriteClientSecret) action()  {}
func (DeleteClientSecret) action() {}

// keepClients returns the actions that keep the Secrets of clients as declared. They touch
// no member, so they go along with whatever else is done.
func (o *Observed) keepClients(plan Plan) []Action {
	if plan.Rule == RuleDeleting {
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
			if plan.Rule != RulePaused && c.isLeft() && c.UID != "" {
				actions = append(actions, DeleteClientSecret{Name: c.Secret, UID: c.UID})
			}
		default:
			if change, due := o.clientChange(c, plan.Rule == RulePaused); due {
				actions = append(actions, WriteClientSecret{Client: c.Name, Change: change})
			}
		}
	}
	return actions
}

// clientChange returns what of the Secret of a client is to be written now.
func (o *Observed) clientChange(c *Client, isPaused bool) (CertificateChange, bool) {
	if o.size() == 0 || c.State == CertificateUnknown || c.State == CertificateNotOwned {
		return "", false
	}
	if o.CA == nil {
		return ChangeBundle, !isPaused && (c.State == CertificateMissing || !c.EntriesMatch)
	}
	if ca := o.certificate(v1beta2.CertificateUseCA); ca == nil || ca.State != CertificateUsable {
		return "", false
	}
	if isPaused {
		return ChangeAll, o.runsOut(&c.Certificate)
	}
	if change, due := o.leafChange(&c.Certificate); due {
		return change, true
	}
	return ChangeBundle, !c.EntriesMatch
}

// isRecorded is true if the status lists the Secret of a client.
func (o *Observed) isRecorded(c *Client) bool {
	return slices.ContainsFunc(o.Cluster.Status.Clients, func(s v1beta2.ClientStatus) bool { return s.SecretName == c.Secret })
}

// isLeft is true for a Secret of the cluster that exists or may exist.
func (c *Client) isLeft() bool {
	return c.State != CertificateMissing && c.State != CertificateNotOwned
}

// hasUnrecordedClients is true if the status is about to list another Secret, which is
// created in the next step.
func (o *Observed) hasUnrecordedClients() bool {
	return slices.ContainsFunc(o.Clients, func(c Client) bool { return !o.isRecorded(&c) })
}

// clientsFollow is true if no client presents a certificate that the present CA has not
// signed: members that trust only the present CA would reject it.
func (o *Observed) clientsFollow() bool {
	for i := range o.Clients {
		c := &o.Clients[i]
		if c.Name != "" && c.isLeft() && !c.Issued.Signed {
			return false
		}
	}
	return true
}
