// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Probe holds what Kubernetes and the members said about a cluster at one time.
type Probe struct {
	// Cluster as it is stored.
	Cluster *v1beta2.EtcdCluster
	// ProbedAt is when the probe began, and Took is how long it took.
	ProbedAt time.Time
	Took     time.Duration
	// Pods and PVCs of exactly this cluster. PodsKnown is false if the pods could not be
	// read.
	Pods      []corev1.Pod
	PodsKnown bool
	PVCs      []corev1.PersistentVolumeClaim
	// Responses of the members that were probed.
	Responses []Response
	// Confirmed is the member list that was read through a quorum; nil if none was, and
	// ConfirmErr then says why.
	Confirmed  *etcd.Membership
	ConfirmErr error
	// FailedReads says, by the names of their pods, which members did not complete a
	// linearizable read. It says nothing about a single member unless Confirmed is there.
	FailedReads map[string]error
	// ClientCertificateExpiry is when the client certificate of the probe expires; zero
	// without TLS.
	ClientCertificateExpiry time.Time
	// CertificateErr is why there was no client certificate for the probe; nil if there was
	// one, and without TLS.
	CertificateErr error
	// Problems says what could not be read.
	Problems []string
}

// Response is what one member said.
type Response struct {
	// Name of the member's pod.
	Name string
	// Health is what the member says of itself; Err is why it did not respond.
	Health etcd.MemberHealth
	Err    error
	// View is the member list that the member has in memory; ViewErr is why there is none.
	View    etcd.Membership
	ViewErr error
	// Took is how long the response took.
	Took time.Duration
}

// CanProbe reports whether the members could be probed at all. If not, a missing
// response means nothing.
func (p *Probe) CanProbe() bool { return p.CertificateErr == nil }

// responded returns the responses of the members that responded.
func (p *Probe) responded() []*Response {
	var list []*Response
	for i := range p.Responses {
		if p.Responses[i].Err == nil {
			list = append(list, &p.Responses[i])
		}
	}
	return list
}

// onlyResponds is true for a member that responds and does not serve, while a quorum serves.
func (p *Probe) onlyResponds(name string) bool {
	_, failed := p.FailedReads[name]
	return failed && p.Confirmed != nil
}

// responseOf returns the response of a member, or nil if it was not probed.
func (p *Probe) responseOf(m *entry) *Response {
	for i := range p.Responses {
		r := &p.Responses[i]
		if r.Err == nil && m.ID != 0 && r.Health.ID == m.ID {
			return r
		}
	}
	for i := range p.Responses {
		r := &p.Responses[i]
		if r.Name == m.Name && (r.Err != nil || m.ID == 0) {
			return r
		}
	}
	return nil
}

func (p *Probe) pod(name string) *corev1.Pod {
	for i := range p.Pods {
		if p.Pods[i].Name == name {
			return &p.Pods[i]
		}
	}
	return nil
}

func (p *Probe) pvc(name string) *corev1.PersistentVolumeClaim {
	for i := range p.PVCs {
		if p.PVCs[i].Name == name {
			return &p.PVCs[i]
		}
	}
	return nil
}

func (p *Probe) metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              p.Cluster.Name,
		Namespace:         p.Cluster.Namespace,
		UID:               p.Cluster.UID,
		ResourceVersion:   p.Cluster.ResourceVersion,
		CreationTimestamp: p.Cluster.CreationTimestamp,
	}
}

// IsUnsettled is true for a probe that may look different in a moment: members follow
// different leaders, or some follow none while others do, or their member lists differ.
func IsUnsettled(p *Probe) bool {
	leaders, lists := map[uint64]bool{}, map[string]bool{}
	for _, r := range p.responded() {
		leaders[r.Health.Leader] = true
		if r.ViewErr == nil {
			lists[strings.Join(p.describeView(r), ",")] = true
		}
	}
	return len(leaders) > 1 || len(lists) > 1
}
