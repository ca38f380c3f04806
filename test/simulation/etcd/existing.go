// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// machine is where a member runs that no pod of a cluster holds. Its name is its address, too.
type machine struct {
	world *World
	name  string
	pod   *corev1.Pod
}

func (m *machine) Name() string                      { return m.name }
func (m *machine) UID() string                       { return m.name }
func (m *machine) IP() string                        { return m.name }
func (m *machine) Pod() (*corev1.Pod, bool)          { return m.pod, true }
func (m *machine) Mounts() map[string]*corev1.Secret { return nil }
func (m *machine) IsSevered() bool                   { return false }

// Exited leaves the process ended: a member that was removed never starts again.
func (m *machine) Exited() {
	for _, p := range m.world.Processes {
		if p.Run == Container(m) {
			m.world.Stop(p)
			return
		}
	}
}

// StartExisting starts an etcd that another program runs, with members of these names. The cluster
// with the UID owner takes it over.
func (e *World) StartExisting(owner, version string, names ...string) error {
	l := &Lineage{Owner: owner, number: len(e.Lineages), BootstrapMember: names[0], Token: "existing", learners: true, Dirs: map[uint64]*DataDir{}}
	var log []Entry
	var urls []string
	for _, name := range names {
		url := ExistingPeerURL(name)
		urls = append(urls, url)
		log = append(log, Entry{term: 1, Kind: entryAddVoter, member: Peer{Id: hash(l.Token, url), Url: url}})
	}
	l.ClusterID = hash(append([]string{l.Token}, urls...)...)
	l.Members = &Membership{}
	for i := range log {
		l.Members = l.Members.apply(&log[i])
	}
	e.Lineages = append(e.Lineages, l)
	for _, name := range names {
		dir := e.NewDir()
		dir.Log = append([]Entry{}, log...)
		dir.Term, dir.commit, dir.Members = 1, len(log), l.Members
		dir.become(hash(l.Token, ExistingPeerURL(name)), name, ExistingPeerURL(name), l)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: resources.ContainerName, Image: "etcd:v" + version, Command: []string{"etcd", "--strict-reconfig-check=false"},
		}}}}
		p, err := e.Start(&machine{world: e, name: name, pod: pod}, dir, pod)
		if err != nil {
			return err
		}
		p.linked = true // by names that no Service of the cluster gives
	}
	return nil
}

// RestartExistingEmpty starts the members of an etcd that is taken over again, all of them without
// their data: they form another etcd with the same IDs.
func (e *World) RestartExistingEmpty() error {
	var names []string
	var from *Process
	for _, p := range slices.Clone(e.Processes) {
		if p.IsOld() {
			from = p
			names = append(names, p.Run.Name())
			e.Destroy(p.Dir)
			e.Stop(p)
		}
	}
	return e.StartExisting(from.Dir.Lineage.Owner, from.Version, names...)
}

// OldMembers returns the members of an etcd that is taken over that serve clients, until they are removed.
func (e *World) OldMembers() []*Process {
	var list []*Process
	for _, p := range e.Processes {
		if p.IsOld() && !p.IsRemovedOld() && e.IsReady(p) {
			list = append(list, p)
		}
	}
	return list
}

// IsOld is true for a member that another program runs.
func (p *Process) IsOld() bool {
	_, outside := p.Run.(*machine)
	return outside
}

// IsRemovedOld is true for a member of an etcd that was taken over, after its removal. It may not hear
// of that, and follows the last leader that it knew.
func (p *Process) IsRemovedOld() bool {
	return p.IsOld() && p.Dir.Lineage.Members.Find(p.Dir.Id) == nil
}

// ExistingPeerURL is the peer URL of a member that another program runs.
func ExistingPeerURL(name string) string { return "http://" + name + ":2380" }
