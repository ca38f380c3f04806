// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// entryKind is what an entry of the log is about.
type entryKind byte

const (
	entryEmpty entryKind = iota
	entryWrite
	entryAddVoter
	entryAddLearner
	entryPromote
	entryRemove
	entryPublish
)

// entry is one entry of the raft log.
type entry struct {
	term uint64
	kind entryKind
	// write is the number of a client's write.
	write int
	// by is the minor version of the member that has written it; 0 if every version can
	// read it.
	by uint
	// extra counts the entries up to this one that are not kept one by one.
	extra uint64
	// member is whom a change of the membership, or the name that a member gives
	// itself at its first start, is about.
	member peer
}

func (e *entry) changesMembership() bool {
	switch e.kind {
	case entryAddVoter, entryAddLearner, entryPromote, entryRemove:
		return true
	case entryEmpty, entryWrite, entryPublish:
		return false
	default:
		return false
	}
}

// peer is one member of etcd's list.
type peer struct {
	id      uint64
	name    string
	url     string
	learner bool
}

// membership is the member list after some entries were applied. It is replaced, not
// changed, so that copies may be kept.
type membership struct {
	peers   []peer
	removed []uint64
}

func (m *membership) find(id uint64) *peer {
	for i := range m.peers {
		if m.peers[i].id == id {
			return &m.peers[i]
		}
	}
	return nil
}

func (m *membership) byURL(url string) *peer {
	for i := range m.peers {
		if m.peers[i].url == url {
			return &m.peers[i]
		}
	}
	return nil
}

func (m *membership) isVoter(id uint64) bool {
	p := m.find(id)
	return p != nil && !p.learner
}

func (m *membership) voters() int {
	n := 0
	for i := range m.peers {
		if !m.peers[i].learner {
			n++
		}
	}
	return n
}

func (m *membership) quorum() int { return m.voters()/2 + 1 }

// unsettled counts learners and members that have not started.
func (m *membership) unsettled() int {
	n := 0
	for i := range m.peers {
		if m.peers[i].learner || m.peers[i].name == "" {
			n++
		}
	}
	return n
}

// apply returns the list after an entry.
func (m *membership) apply(e *entry) *membership {
	if !e.changesMembership() && e.kind != entryPublish {
		return m
	}
	next := &membership{peers: slices.Clone(m.peers), removed: m.removed}
	i := slices.IndexFunc(next.peers, func(p peer) bool { return p.id == e.member.id })
	switch {
	case (e.kind == entryAddVoter || e.kind == entryAddLearner) && i < 0:
		added := e.member
		added.learner = e.kind == entryAddLearner
		next.peers = append(next.peers, added)
		slices.SortFunc(next.peers, func(a, b peer) int {
			if a.id < b.id {
				return -1
			}
			return 1
		})
	case e.kind == entryPromote && i >= 0:
		next.peers[i].learner = false
	case e.kind == entryPublish && i >= 0:
		next.peers[i].name = e.member.name
	case e.kind == entryRemove && i >= 0:
		next.peers = slices.Delete(next.peers, i, i+1)
		next.removed = append(slices.Clone(next.removed), e.member.id)
	}
	return next
}

// lineage is everything that descends from one start of a new cluster.
type lineage struct {
	// owner is the UID of the EtcdCluster, number its place among the lineages.
	owner     string
	number    int
	clusterID uint64
	seed      string
	token     string
	// dirs holds the data directory of each member that ever had one.
	dirs map[uint64]*dataDir
	// learners is true if its first version knew learners.
	learners bool
	// blind is true if its version was changed when nobody knew which one it ran, so
	// that nothing could keep a user from a step that etcd cannot take.
	blind bool
	// members is the list as far as any leader has committed it.
	members *membership
	// reseeded is the etcd that this one goes on from, and replaced is true once another
	// one goes on from this.
	reseeded *lineage
	replaced bool
	// lost is true once faults took the quorum for good.
	lost bool
	// order lists the IDs in dirs as they came.
	order []uint64
}

// dataDir is a data directory, on a volume or in a pod. It survives its process.
type dataDir struct {
	// id is 0 while the directory is empty.
	id      uint64
	name    string
	url     string
	lineage *lineage
	log     []entry
	commit  int
	term    uint64
	// snapshot is the index of the last snapshot.
	snapshot uint64
	// members is the list as far as it was applied.
	members *membership
	// version last ran on it.
	version string
	// doomed directories will be destroyed: their pod was asked to go.
	doomed, destroyed bool
	// wiped directories took the place of one that held a member, and from damaged ones
	// nobody starts.
	wiped, damaged bool
}

// index returns the raft index of the n-th entry that is kept.
func (d *dataDir) index(n int) uint64 {
	if n == 0 {
		return 0
	}
	return uint64(n) + d.log[n-1].extra
}

func (d *dataDir) empty() bool { return d.id == 0 }

// last returns the term of the last entry, and how many there are.
func (d *dataDir) last() (term uint64, length int) {
	if len(d.log) == 0 {
		return 0, 0
	}
	return d.log[len(d.log)-1].term, len(d.log)
}

// newer is true if the log of d is at least as new as that of other.
func (d *dataDir) newer(other *dataDir) bool {
	dt, dl := d.last()
	ot, ol := other.last()
	return dt > ot || (dt == ot && dl >= ol)
}

func (d *dataDir) become(id uint64, name, url string, l *lineage) {
	d.id, d.name, d.url, d.lineage = id, name, url, l
	l.dirs[id] = d
	l.order = append(l.order, id)
}

// arguments is what etcd was started with.
type arguments struct {
	snapshotCount           uint64
	name, state, token, url string
	names, urls             []string
	strict                  bool
}

// parseArguments reads the command and the variables that a pod has now.
func parseArguments(pod *corev1.Pod) arguments {
	a := arguments{strict: true, state: pod.Annotations[resources.AnnotationInitialState]}
	for entry := range strings.SplitSeq(pod.Annotations[resources.AnnotationInitialCluster], ",") {
		name, url, _ := strings.Cut(entry, "=")
		a.names, a.urls = append(a.names, name), append(a.urls, url)
	}
	for _, arg := range command(pod) {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "--name":
			a.name = value
		case "--initial-cluster-token":
			a.token = value
		case "--initial-advertise-peer-urls":
			a.url = value
		case "--snapshot-count":
			a.snapshotCount, _ = strconv.ParseUint(value, 10, 64)
		case "--strict-reconfig-check":
			a.strict = value != "false"
		}
	}
	return a
}
