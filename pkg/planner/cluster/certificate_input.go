// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

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
		CanAuthenticate: o.CanAuthenticate,
		RotateCA:        o.Cluster.Annotations[resources.AnnotationRotateCA],
		DropOldCA:       o.Cluster.Annotations[resources.AnnotationDropOldCA],
		Bootstrapped:    isBootstrapped(o),
		Hibernated:      desiredSize(o.Cluster) == 0,
		Paused:          o.Cluster.Spec.Paused,
		Deleting:        o.Cluster.DeletionTimestamp != nil,
	}
	facts.RequestRounds = o.Record.Rotation.RoundsOf(facts.RotateCA)
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.Use == v1beta2.CertificateUseCA {
			facts.RenewalRounds = o.Record.Rotation.RoundsOf(c.Serial)
		}
	}
	for i := range o.Clients {
		if c := &o.Clients[i]; c.Name != "" {
			facts.Clients = append(facts.Clients, c.Certificate)
		}
	}
	for _, p := range MemberPods(o) {
		if p.Owned && !isGone(p) {
			facts.Pods = append(facts.Pods, certificates.Pod{
				Name: p.Name, UID: p.UID, Trust: p.Trust, Accepts: p.Accepts, TrustsCA: p.TrustsCA, TrustsPrevious: p.TrustsPrevious,
				Running: p.Running, HasPVC: pvcByName(o.PVCs, p.Name) != nil || p == o.RecoveryMember.Pod && o.RecoveryMember.HasPVC,
				Notified: p.Certificates != "", Refreshed: p.Refreshed,
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
