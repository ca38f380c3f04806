// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// IssueCA creates a CA.
type IssueCA certificates.IssueCA

// IssueCertificate issues the certificate for one use.
type IssueCertificate certificates.IssueCertificate

// DropOldCAs ends the trust in every CA but the present one.
type DropOldCAs struct{}

// RequestCertificate creates the Certificate object for a use, or repairs it.
type RequestCertificate struct{ Use v1beta2.CertificateUse }

// RefreshPod makes the kubelet look for the present content of the volumes of a pod.
type RefreshPod struct{ Name, UID string }

func (IssueCA) action()            {}
func (IssueCertificate) action()   {}
func (DropOldCAs) action()         {}
func (RequestCertificate) action() {}
func (RefreshPod) action()         {}

// certificateInput returns what package certificates needs to know of the cluster.
func certificateInput(o *Observed) *certificates.Observed {
	facts := &certificates.Observed{
		Now:             o.Now,
		Certificates:    o.Certificates,
		CA:              o.CA,
		CertManager:     o.CertManager,
		Trust:           o.Trust,
		MembersVerified: areVerified(o.Etcd.Members),
		Linearizable:    o.Etcd.Linearizable,
		RotateCA:        o.Cluster.Annotations[resources.AnnotationRotateCA],
		DropOldCA:       o.Cluster.Annotations[resources.AnnotationDropOldCA],
		Bootstrapped:    isBootstrapped(o),
		Hibernated:      desiredSize(o.Cluster) == 0,
		Paused:          o.Cluster.Spec.Paused,
		Deleting:        o.Cluster.DeletionTimestamp != nil,
	}
	for i := range o.Clients {
		if c := &o.Clients[i]; c.Name != "" {
			facts.Clients = append(facts.Clients, c.Certificate)
		}
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !isGone(p) {
			facts.Pods = append(facts.Pods, certificates.Pod{
				Name: p.Name, UID: p.UID, Trust: p.Trust, Accepts: p.Accepts, Notified: p.Certificates != "", Refreshed: p.Refreshed,
			})
		}
	}
	return facts
}

// areVerified is true if every member was seen to show certificates of the present CA, at both
// its listeners.
func areVerified(members []Member) bool {
	return len(members) > 0 && !slices.ContainsFunc(members, func(m Member) bool { return !m.CertificateVerified })
}

// keepCertificates returns the actions that keep the certificates of the cluster valid. They
// touch no member, so they go along with whatever else is done.
func keepCertificates(o *Observed, plan Plan) []Action {
	facts := certificateInput(o)
	facts.AddsMember = slices.ContainsFunc(plan.Actions, func(a Action) bool {
		_, adds := a.(AddMember)
		return adds
	})
	steps := facts.Decide()
	var actions []Action
	if steps.IssueCA != nil {
		actions = append(actions, IssueCA(*steps.IssueCA))
	}
	for _, c := range steps.Issue {
		actions = append(actions, IssueCertificate(c))
	}
	if steps.DropOldCAs {
		actions = append(actions, DropOldCAs{})
	}
	for _, use := range steps.Request {
		actions = append(actions, RequestCertificate{Use: use})
	}
	for _, p := range steps.Refresh {
		actions = append(actions, RefreshPod{Name: p.Name, UID: p.UID})
	}
	return actions
}

// certificatesValid is about clusters with certificates only.
func certificatesValid(o *Observed, _ Plan) v1beta2.ClusterCondition {
	facts := certificateInput(o)
	// What the controller issues after a pause counts as being issued.
	facts.Paused, facts.Deleting = false, false
	return facts.Condition()
}

func certificateStatuses(o *Observed) []v1beta2.CertificateStatus {
	var list []v1beta2.CertificateStatus
	for i := range o.Certificates {
		list = append(list, o.Certificates[i].Status())
	}
	return list
}
