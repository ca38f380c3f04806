// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// World is every etcd process and data directory.
type World struct {
	*timeline.Timeline
	plan *schedules.Schedule
	// Observer and Network are set by what is built on top.
	Observer Observer
	Network  network

	Processes []*Process
	PVCs      map[string]*DataDir
	Lineages  []*Lineage
	ids       uint64
	// Slow limits how many entries a member that joins reads in one tick; 0: no limit.
	Slow int
	// StallNext is true until a learner joins that never gets an entry of the log, as on a network that
	// drops large packets.
	StallNext bool
	// Cut holds pairs of pods that do not reach each other, and unreachable pods that
	// controllers do not reach.
	Cut         map[[2]string]bool
	Unreachable map[string]bool
	// Elsewhere says to which machine the address of a pod leads, of those that are not that of the pod.
	Elsewhere map[string]string
	// Upgrading are pods whose container is about to restart.
	Upgrading map[string]bool
	// initialized are pods whose init containers have run in their sandbox.
	initialized map[string]bool
	// Mislabeled holds the version in each image whose tag says another version.
	Mislabeled map[string]string
	// Backups that are stored, by name.
	Backups map[string]*Snapshot
}

// Container is where an etcd runs: the container of a pod, as its kubelet sees it.
type Container interface {
	Name() string
	UID() string
	IP() string
	// Pod is false if the API no longer has the pod.
	Pod() (*corev1.Pod, bool)
	// Mounts is what the volumes hold, by the name of the Secret.
	Mounts() map[string]*corev1.Secret
	// IsSevered is true while the node is cut off.
	IsSevered() bool
	// Exited is called when the process has ended by itself.
	Exited()
}

// network is what members need of Kubernetes to find each other.
type network interface {
	// IsResolvable is true while members find each other by name.
	IsResolvable() bool
	// Address is that of a pod of the cluster; "" if there is none.
	Address(pod string) string
	// Rejects is true if one member does not take the certificate of the other one.
	Rejects(a, b *Process) bool
	// Volume is the directory on the volume of a PVC; nil if there is none.
	Volume(pvc string) *DataDir
}

// Observer looks at what etcd does.
type Observer interface {
	// Bootstrapping is called when etcd is about to start a new cluster, FillingRecoveryMember
	// when the recovery member is about to be filled. Joining is called when an empty
	// directory is about to become that of a member that the others have added.
	Bootstrapping(l *Lineage)
	FillingRecoveryMember(l *Lineage, pod *corev1.Pod)
	// ReadingInUse is called when the recovery member in a pod is about to read a directory on which
	// an etcd runs.
	ReadingInUse(d *DataDir, pod *corev1.Pod)
	Joining(in Container, d *DataDir, id uint64, l *Lineage)
	// Started is called when etcd has started, Elected when a member leads.
	Started(p *Process)
	Elected(p *Process)
	// CertificatesChanged is called when other certificates are shown or trusted.
	CertificatesChanged()
	// Doomed is called when the end of a data directory was decided.
	Doomed(d *DataDir)
}

// New is a world in which no etcd runs.
func New(t *timeline.Timeline, plan *schedules.Schedule) *World {
	return &World{
		Timeline: t, plan: plan, Backups: map[string]*Snapshot{}, PVCs: map[string]*DataDir{}, Cut: map[[2]string]bool{},
		Unreachable: map[string]bool{}, Upgrading: map[string]bool{}, initialized: map[string]bool{}, Mislabeled: map[string]string{}, Elsewhere: map[string]string{},
	}
}

// NewDir makes an empty data directory.
func (e *World) NewDir() *DataDir { return &DataDir{Members: &Membership{}} }

// DirOn returns the directory on the volume of the PVC with a UID.
func (e *World) DirOn(uid string) *DataDir {
	if e.PVCs[uid] == nil {
		e.PVCs[uid] = e.NewDir()
	}
	return e.PVCs[uid]
}

// DestroyPVC destroys the directory on the volume of a PVC.
func (e *World) DestroyPVC(uid string) {
	if d := e.PVCs[uid]; d != nil {
		e.Doom(d)
		e.Destroy(d)
		delete(e.PVCs, uid)
	}
}

// Doom marks a directory whose end was decided.
func (e *World) Doom(d *DataDir) {
	if d != nil && !d.Doomed {
		d.Doomed = true
		e.Observer.Doomed(d)
	}
}

// Destroy ends a data directory.
func (e *World) Destroy(d *DataDir) {
	if d != nil {
		d.Destroyed = true
	}
}

// IsInUse is true while a process runs on a directory.
func (e *World) IsInUse(d *DataDir) bool {
	return slices.ContainsFunc(e.Processes, func(p *Process) bool { return p.Dir == d })
}

// Restarting notes that a container is about to restart with another image.
func (e *World) Restarting(r Container) { e.Upgrading[r.UID()] = true }

// Stop ends a process. Its data directory stays.
func (e *World) Stop(p *Process) {
	if i := slices.Index(e.Processes, p); i >= 0 {
		e.Processes = slices.Delete(e.Processes, i, i+1)
	}
}
