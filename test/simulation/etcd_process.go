// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// process is a running etcd.
type process struct {
	run     *run
	dir     *dataDir
	version string
	strict  bool
	// snapshotCount is after how many entries it makes a snapshot.
	snapshotCount uint64
	// members is the list as far as this member has applied the log.
	members *membership
	applied int
	leader  uint64
	// heard is when it last heard of a leader, and patience how long it waits for one.
	heard    time.Duration
	patience time.Duration
	// linked is true once the others can resolve its name.
	linked bool
	// published is true once the others have heard its name, and serves once it answers
	// clients: then, or, in later versions, after it has waited for that for a while.
	published, serves bool
	started           time.Duration
	// trust holds the authorities that were read at the start, by the name of the secret.
	trust map[string][]byte
	// match is what a leader knows of the others' logs.
	match map[uint64]int
}

func (p *process) leads() bool { return p.leader == p.dir.id }

// etcdWorld is every etcd process and data directory.
type etcdWorld struct {
	w         *World
	processes []*process
	claims    map[string]*dataDir
	lineages  []*lineage
	ids       uint64
	// slow limits how many entries a member that joins reads in one tick; 0: no limit.
	slow int
	// cut holds pairs of pods that do not reach each other, and unreachable pods that
	// controllers do not reach.
	cut         map[[2]string]bool
	unreachable map[string]bool
	// upgrading are pods whose container is about to restart.
	upgrading map[string]bool
}

func newEtcdWorld(w *World) *etcdWorld {
	return &etcdWorld{
		w: w, claims: map[string]*dataDir{}, cut: map[[2]string]bool{},
		unreachable: map[string]bool{}, upgrading: map[string]bool{},
	}
}

func (e *etcdWorld) newDir() *dataDir { return &dataDir{members: &membership{}} }

// claimDir returns the directory on the volume of a claim; nil if there is none.
func (e *etcdWorld) claimDir(name string) *dataDir {
	claim, found := lookup[claimObject](e.w.store, kindClaim, name)
	if !found {
		return nil
	}
	uid := string(claim.UID)
	if e.claims[uid] == nil {
		e.claims[uid] = e.newDir()
	}
	return e.claims[uid]
}

func (e *etcdWorld) destroyClaim(uid string) {
	if d := e.claims[uid]; d != nil {
		e.doom(d)
		e.destroy(d)
		delete(e.claims, uid)
	}
}

// doom marks a directory whose end was decided.
func (e *etcdWorld) doom(d *dataDir) {
	if d != nil && !d.doomed {
		d.doomed = true
		e.w.checks.doomed(d)
	}
}

func (e *etcdWorld) destroy(d *dataDir) {
	if d != nil {
		d.destroyed = true
	}
}

func (e *etcdWorld) inUse(d *dataDir) bool {
	return slices.ContainsFunc(e.processes, func(p *process) bool { return p.dir == d })
}

func (e *etcdWorld) restarting(r *run) { e.upgrading[r.uid] = true }

func (e *etcdWorld) stop(p *process) {
	if i := slices.Index(e.processes, p); i >= 0 {
		e.processes = slices.Delete(e.processes, i, i+1)
	}
}

var (
	errRemoved  = errors.New("the member has been permanently removed from the cluster")
	errMismatch = errors.New("error validating peerURLs: member count is unequal")
	errNoPeer   = errors.New("cannot fetch cluster info from peer urls")
	errOldLog   = errors.New("unmarshal should never fail")
	errFlag     = errors.New("unrecognized environment variable")
	errDamaged  = errors.New("failed to read WAL, cannot be repaired")
	errUnlisted = errors.New("couldn't find local name in the initial cluster configuration")
)

// start is what etcd does first. An error ends the process.
func (e *etcdWorld) start(r *run, dir *dataDir, pod *corev1.Pod) (*process, error) {
	args := parseArguments(pod)
	p := &process{
		run: r, dir: dir, version: versionOf(image(pod)), strict: args.strict, snapshotCount: args.snapshotCount,
		started: e.w.now, heard: e.w.now, patience: e.w.dice.between(time.Second, 2*time.Second), match: map[uint64]int{},
	}
	delete(e.upgrading, r.uid)
	if environment(pod, badEnvironment) {
		return nil, errFlag
	}
	if dir.damaged {
		return nil, errDamaged
	}
	if dir.empty() && fetches(pod) {
		if err := e.fill(r, dir, pod); err != nil {
			return nil, err
		}
	}
	if dir.empty() {
		if err := e.initialize(r, dir, args); err != nil {
			return nil, err
		}
	}
	if p.snapshotCount == 0 {
		p.snapshotCount = defaultSnapshotCount(p.version)
	}
	p.members, p.applied = dir.members, dir.commit
	if dir.holdsUnreadable(p.version) {
		return nil, errOldLog
	}
	if slices.Contains(p.members.removed, dir.id) {
		return nil, errRemoved
	}
	dir.lineage.learners = dir.lineage.learners && !p.strict
	p.trusts()
	e.processes = append(e.processes, p)
	e.w.checks.versioned(p)
	e.w.checks.talk()
	dir.version = p.version
	return p, nil
}

func command(pod *corev1.Pod) []string {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == resources.ContainerName {
			return c.Command
		}
	}
	return nil
}

// fetches is true for the pod of a recovery, which fills its own directory.
func fetches(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == resources.InitFetch })
}

// environment is true if etcd in a pod has a variable.
func environment(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	})
}

// initialize fills an empty directory: for a new cluster, or as the member that the
// others have added.
func (e *etcdWorld) initialize(r *run, dir *dataDir, args arguments) error {
	if !slices.Contains(args.names, args.name) {
		return errUnlisted
	}
	if args.state == "new" {
		e.bootstrap(r, dir, args)
		return nil
	}
	remote := e.anyPeer(r, args)
	if remote == nil {
		return errNoPeer
	}
	if len(remote.members.peers) != len(args.urls) {
		return errMismatch
	}
	for _, url := range args.urls {
		if remote.members.byURL(url) == nil {
			return fmt.Errorf("%w: %s", errMismatch, url)
		}
	}
	self := remote.members.byURL(args.url)
	e.w.checks.joining(r, dir, self.id, remote.dir.lineage)
	dir.become(self.id, args.name, args.url, remote.dir.lineage)
	return nil
}

func (e *etcdWorld) bootstrap(r *run, dir *dataDir, args arguments) {
	pod, _ := r.pod()
	l := &lineage{
		owner: ownerOf(pod), number: len(e.lineages), seed: args.name, token: args.token,
		learners: !args.strict, clusterID: hash(append([]string{args.token}, args.urls...)...), dirs: map[uint64]*dataDir{},
	}
	e.w.checks.bootstrapping(l)
	e.lineages = append(e.lineages, l)
	for i, url := range args.urls {
		id := hash(args.token, url)
		dir.log = append(dir.log, entry{term: 1, kind: entryAddVoter, member: peer{id: id, url: url}})
		if args.names[i] == args.name {
			dir.become(id, args.name, url, l)
		}
	}
	dir.term, dir.commit = 1, len(dir.log)
	for i := range dir.log {
		dir.members = dir.members.apply(&dir.log[i])
	}
	l.members = dir.members
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// anyPeer returns a member of the initial cluster that answers.
func (e *etcdWorld) anyPeer(r *run, args arguments) *process {
	if !e.w.resolvable() {
		return nil
	}
	var peers []*process
	for _, p := range e.processes {
		if p.dir.name != args.name && slices.Contains(args.names, p.dir.name) && p.linked && !e.isCut(p.run.name, r.name) && len(p.members.peers) > 0 {
			peers = append(peers, p)
		}
	}
	if len(peers) == 0 {
		return nil
	}
	return pick(e.w.dice, peers...)
}

// serving returns the process that answers clients under an address.
func (e *etcdWorld) serving(ip string) *process {
	if p := e.byIP(ip); p != nil && p.serves {
		return p
	}
	return nil
}

// byIP returns the process that runs under an address.
func (e *etcdWorld) byIP(ip string) *process {
	for _, p := range e.processes {
		if p.run.ip == ip {
			return p
		}
	}
	return nil
}

// member returns the process of a member of a lineage.
func (e *etcdWorld) member(l *lineage, id uint64) *process {
	for _, p := range e.processes {
		if p.dir.lineage == l && p.dir.id == id {
			return p
		}
	}
	return nil
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

func (e *etcdWorld) isCut(a, b string) bool { return e.cut[pair(a, b)] }

// reaches is true if two members can talk.
func (e *etcdWorld) reaches(a, b *process) bool {
	return a == b || (a.dir.lineage == b.dir.lineage && a.linked && b.linked && !e.isCut(a.run.name, b.run.name) && a.run.severed() == b.run.severed())
}
