// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// IssueCA creates a CA.
type IssueCA certificates.IssueCA

// IssueCertificate issues the certificate for one use.
type IssueCertificate certificates.IssueCertificate

// DropOldCAs ends the trust in every CA but the present one. With ForNext the request of the user for that also is about
// the CA that is requested and not issued yet.
type DropOldCAs struct{ ForNext bool }

// RequestCertificate creates the Certificate object for a use, or repairs it.
type RequestCertificate struct{ Use v1beta2.CertificateUse }

// RefreshPod makes the kubelet look for the present content of the volumes of a pod.
type RefreshPod struct{ Name, UID string }

func (IssueCA) action()            {}
func (IssueCertificate) action()   {}
func (DropOldCAs) action()         {}
func (RequestCertificate) action() {}
func (RefreshPod) action()         {}

// keepCertificates returns the actions that keep the certificates of the cluster valid. They
// stop no member, so they go along with whatever else is done.
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
		actions = append(actions, DropOldCAs{ForNext: facts.IsDropForNext()})
	}
	for _, use := range steps.Request {
		actions = append(actions, RequestCertificate{Use: use})
	}
	for _, p := range steps.Refresh {
		if mayRestartBesideOthers(o, podByName(o.Pods, p.Name)) {
			continue
		}
		actions = append(actions, RefreshPod{Name: p.Name, UID: p.UID})
	}
	return actions
}

// certificatesValid is about clusters with certificates only.
func certificatesValid(o *Observed, _ Plan) v1beta2.ClusterCondition {
	facts := certificateInput(o)
	facts.Deleting = false // what goes together with its cluster is no fault
	return facts.Condition()
}

func certificateStatuses(observed []certificates.Certificate) []v1beta2.CertificateStatus {
	var list []v1beta2.CertificateStatus
	for i := range observed {
		list = append(list, observed[i].Status())
	}
	return list
}
