// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// clientsAsDeclared is False while the Secret of a client is missing or differs from what is
// declared. That does not harm the members.
func clientsAsDeclared(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionClientsAsDeclared
	condition := v1beta2.ClusterCondition{Type: t}
	for _, s := range clientStatuses(o) {
		switch {
		case s.Ready == corev1.ConditionTrue:
			if condition.Status == "" {
				condition = is(t, corev1.ConditionTrue, ReasonAsDeclared, "")
			}
		case condition.Status != corev1.ConditionFalse:
			// The first that is not ready; a Secret that cannot be read gives way.
			condition = is(t, s.Ready, Reason(s.Reason), s.Message)
		}
	}
	return condition
}

// clientStatuses tells about the Secrets of clients: those of spec.clients in their order, then
// those that are about to be deleted.
func clientStatuses(o *Observed) []v1beta2.ClientStatus {
	if o.Cluster.DeletionTimestamp != nil {
		return o.Cluster.Status.Clients
	}
	var list []v1beta2.ClientStatus
	for i := range o.Clients {
		c := &o.Clients[i]
		if c.Name == "" && !c.MayExist() {
			continue
		}
		certificate := c.Status()
		s := v1beta2.ClientStatus{SecretName: c.Secret, Name: c.Name, NotAfter: certificate.NotAfter, RenewalTime: certificate.RenewalTime}
		ready, reason, message := clientState(o, c)
		if s.Ready = ready; ready != corev1.ConditionTrue {
			s.Reason, s.Message = string(reason), message
		}
		list = append(list, s)
	}
	return list
}

// clientState says whether the Secret of a client is as declared. A renewal that is due
// changes nothing about that.
func clientState(o *Observed, c *Client) (corev1.ConditionStatus, Reason, string) {
	named := "Secret " + c.Secret + " of client " + c.Name
	switch {
	case c.State == certificates.Unknown:
		return corev1.ConditionUnknown, certificates.ReasonSecretUnreadable, c.Message
	case c.Name == "":
		return corev1.ConditionFalse, ReasonRemovingClient, "Secret " + c.Secret + " of a client that was removed still exists"
	case c.State == certificates.NotOwned:
		return corev1.ConditionFalse, ReasonNameConflict, named + " exists and was not made for this cluster. " +
			"Delete it if nothing needs it, or set secretName of the client to another name."
	case c.State == certificates.Usable && c.EntriesMatch && (o.CA == nil || c.Issued.SANsMatch):
		return corev1.ConditionTrue, ReasonAsDeclared, ""
	}
	if _, due := clientChange(c, certificateInput(o)); due {
		return corev1.ConditionFalse, certificates.ReasonIssuing, named + " is being written"
	}
	switch {
	case o.Cluster.Spec.Paused:
		return corev1.ConditionFalse, ReasonPaused, named + " is not as declared, and the controller writes it after spec.paused=false"
	case desiredSize(o.Cluster) == 0:
		return corev1.ConditionFalse, ReasonHibernated, named + " is not as declared, and the controller writes it when spec.size is set"
	case c.State != certificates.Missing && c.State != certificates.Usable:
		return corev1.ConditionFalse, Reason(c.Reason()), c.Message
	default:
		return corev1.ConditionFalse, certificates.ReasonIssuing, named + " waits for the CA of the cluster"
	}
}

// binding names the Secret of the first client while it is as declared. A Secret that cannot
// be read at the moment changes nothing.
func binding(o *Observed, statuses []v1beta2.ClientStatus) *corev1.LocalObjectReference {
	before := o.Cluster.Status.Binding
	if o.Cluster.DeletionTimestamp != nil {
		return before.DeepCopy()
	}
	first := slices.IndexFunc(statuses, func(s v1beta2.ClientStatus) bool { return s.Name != "" })
	if first < 0 {
		return nil
	}
	s := &statuses[first]
	isKept := s.Ready == corev1.ConditionUnknown && before != nil && before.Name == s.SecretName
	if s.Ready == corev1.ConditionTrue || isKept {
		return &corev1.LocalObjectReference{Name: s.SecretName}
	}
	return nil
}
