// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Snapshot is what is stored of a cluster.
type Snapshot struct {
	Lineage *Lineage
	Log     []Entry
	Term    uint64
	Version string
}

var (
	errNoSource = errors.New("the member that the snapshot is fetched from does not respond")
	errInUse    = errors.New("an etcd runs on the volume that is read")
	errNoBump   = errors.New("etcd's program knows no revision bump")
	errNameless = errors.New("etcd's program waits for the DNS to know the name of a hidden pod")
)

// fill makes a data directory from a snapshot.
func (e *World) fill(r Container, dir *DataDir, pod *corev1.Pod, restore *agent.Request, source *Snapshot) {
	url := restore.Restore.PeerURLs[0]
	token := restore.Restore.InitialClusterToken
	l := &Lineage{
		Owner: OwnerOf(pod), number: len(e.Lineages), BootstrapMember: r.Name(), Token: token, Predecessor: source.Lineage,
		space: source.Lineage.space, learners: source.Lineage.learners, ClusterID: hash(token, url), Dirs: map[uint64]*DataDir{},
	}
	e.Observer.FillingRecoveryMember(l, pod)
	e.Lineages = append(e.Lineages, l)
	// What it was a member of before is forgotten; every write keeps its place. The log
	// is new, so that no version comes upon what an older one has written.
	for i := range source.Log {
		old := source.Log[i]
		old.by = 0
		if old.Kind != EntryWrite {
			old = Entry{term: old.term, Kind: EntryEmpty}
		}
		dir.Log = append(dir.Log, old)
	}
	id := hash(token, url)
	dir.Log = append(dir.Log, Entry{term: source.Term, Kind: entryAddVoter, member: Peer{Id: id, Url: url}})
	dir.become(id, r.Name(), url, l)
	dir.Term, dir.commit = source.Term, len(dir.Log)
	for i := range dir.Log {
		dir.Members = dir.Members.apply(&dir.Log[i])
	}
	dir.Version, dir.filler, l.Members = source.Version, restore.ID, dir.Members
}

// salvage reads the whole log of a member from its volume. The agent cannot lock the database of an
// etcd that runs.
func (e *World) salvage(pod *corev1.Pod) (*Snapshot, error) {
	for i := range pod.Spec.Volumes {
		pvc := pod.Spec.Volumes[i].PersistentVolumeClaim
		if pvc == nil || pvc.ClaimName == pod.Name {
			continue
		}
		d := e.Network.Volume(pvc.ClaimName)
		switch {
		case d == nil || d.IsEmpty() || d.Damaged:
			return nil, errNoSource
		case e.IsInUse(d):
			e.Observer.ReadingInUse(d, pod)
			return nil, errInUse
		}
		return &Snapshot{Lineage: d.Lineage, Log: d.Log, Term: d.Term, Version: d.Version}, nil
	}
	return nil, errNoSource
}

// fetch returns what the recovery member is filled from: a stored backup, or what a member has
// applied; nil if it cannot be had.
func (e *World) fetch(request *agent.Request) *Snapshot {
	if request.Store != nil {
		return e.Backups[request.Fetch.SHA256]
	}
	source := e.snapshotOf(request.Etcd.Endpoints[0].Name)
	if source == nil {
		return nil
	}
	return &Snapshot{Lineage: source.Dir.Lineage, Log: source.Dir.Log[:source.Applied], Term: source.Dir.Term, Version: source.Version}
}

// snapshotOf returns the member that a snapshot is fetched from by its name.
func (e *World) snapshotOf(name string) *Process {
	if !e.Network.IsResolvable() {
		return nil
	}
	return e.Serving(e.Network.Address(name))
}

// initRequest reads the request of the agent in an init container.
func initRequest(pod *corev1.Pod, name string, command agent.Command) (*agent.Request, error) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != name {
			continue
		}
		for _, arg := range c.Command {
			if text, found := strings.CutPrefix(arg, "--"+agent.RequestFlag+"="); found {
				return agent.DecodeRequest(command, []byte(text))
			}
		}
	}
	return nil, fmt.Errorf("pod %s has no init container %s with a request", pod.Name, name)
}

// mayRestore returns the error with which etcd's program rejects a request.
func mayRestore(pod *corev1.Pod, restore *agent.Restore) error {
	version := restoringVersion(pod)
	if restore.RevisionBump > 0 && !resources.BumpsRevision(version) {
		return fmt.Errorf("%w: %s", errNoBump, version)
	}
	looksUp := strings.HasPrefix(version, "v3.2.") || strings.HasPrefix(version, "v3.3.")
	if url := restore.PeerURLs[0]; looksUp && !slices.ContainsFunc(pod.Spec.HostAliases, func(a corev1.HostAlias) bool {
		return slices.ContainsFunc(a.Hostnames, func(host string) bool { return strings.Contains(url, "//"+host+":") })
	}) {
		return fmt.Errorf("%w: %s", errNameless, url)
	}
	return nil
}

// restoringVersion is the version of etcd whose program restores.
func restoringVersion(pod *corev1.Pod) string {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == resources.InitRestore {
			return c.Image[strings.LastIndexByte(c.Image, ':')+1:]
		}
	}
	return ""
}

// RecoveryMember returns the data that a cluster goes on from.
func (e *World) RecoveryMember(record *v1beta2.RecoveryStatus) *DataDir {
	for _, l := range slices.Backward(e.Lineages) {
		if l.BootstrapMember == record.RecoveryMember && fmt.Sprintf("%x", l.ClusterID) == record.ClusterID && len(l.Order) > 0 {
			return l.Dirs[l.Order[0]]
		}
	}
	return nil
}
