// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var (
	errNoSource = errors.New("the member that the snapshot is fetched from does not answer")
	errNoBump   = errors.New("etcd's program knows no revision bump")
	errNameless = errors.New("etcd's program waits for the DNS to know the name of a hidden pod")
)

// fill does what the init containers of the seed of a recovery do: it fetches the
// snapshot of a member and makes a data directory from it.
func (e *etcdWorld) fill(r *run, dir *dataDir, pod *corev1.Pod) error {
	fetch, err := initRequest(pod, resources.InitFetch, agent.CommandFetch)
	if err != nil {
		return err
	}
	restore, err := initRequest(pod, resources.InitRestore, agent.CommandRestore)
	if err != nil {
		return err
	}
	if err := mayRestore(pod, restore.Restore); err != nil {
		return err
	}
	source := e.fetch(fetch)
	if source == nil {
		return errNoSource
	}
	url := restore.Restore.PeerURLs[0]
	token := restore.Restore.InitialClusterToken
	l := &lineage{
		owner: ownerOf(pod), number: len(e.lineages), seed: r.name, token: token, reseeded: source.lineage,
		learners: source.lineage.learners, clusterID: hash(token, url), dirs: map[uint64]*dataDir{},
	}
	e.w.checks.reseeding(l, pod)
	e.lineages = append(e.lineages, l)
	// What it was a member of before is forgotten; every write keeps its place. The log
	// is new, so that no version comes upon what an older one has written.
	for i := range source.log {
		old := source.log[i]
		old.by = 0
		if old.kind != entryWrite {
			old = entry{term: old.term, kind: entryEmpty}
		}
		dir.log = append(dir.log, old)
	}
	id := hash(token, url)
	dir.log = append(dir.log, entry{term: source.term, kind: entryAddVoter, member: peer{id: id, url: url}})
	dir.become(id, r.name, url, l)
	dir.term, dir.commit = source.term, len(dir.log)
	for i := range dir.log {
		dir.members = dir.members.apply(&dir.log[i])
	}
	dir.version, l.members = source.version, dir.members
	return nil
}

// fetch returns what the seed is filled from: a stored backup, or what a member has
// applied; nil if it cannot be had.
func (e *etcdWorld) fetch(request *agent.Request) *snapshot {
	if request.Store != nil {
		return e.w.backups[request.Fetch.SHA256]
	}
	source := e.snapshotOf(request.Etcd.Endpoints[0].Name)
	if source == nil {
		return nil
	}
	return &snapshot{lineage: source.dir.lineage, log: source.dir.log[:source.applied], term: source.dir.term, version: source.version}
}

// snapshotOf returns the member that a snapshot is fetched from by its name.
func (e *etcdWorld) snapshotOf(name string) *process {
	pod, found := lookup[*corev1.Pod](e.w.store, kindPod, name)
	if !found || pod.Labels[resources.LabelCluster] != clusterName || !e.w.resolvable() {
		return nil
	}
	return e.serving(pod.Status.PodIP)
}

// initRequest reads what the agent is asked to do in an init container.
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

// mayRestore is what etcd's program says of what it is asked for.
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

// ProveWrite implements cluster.Etcd.
func (p etcdPort) ProveWrite(ctx context.Context, target etcd.Target) error {
	return p.change(ctx, "prove a write", target, func(at *process) error {
		leader := p.c.w.etcd.quorumLeader(at)
		if leader == nil || !p.c.w.etcd.append(leader, entry{kind: entryEmpty}) {
			return refused("prove a write", at, etcd.ErrNoQuorum)
		}
		return nil
	})
}

// Pod implements cluster.Cache.
func (c *cache) Pod(_, name string) (*corev1.Pod, error) {
	return cached[*corev1.Pod](c, kindPod, name)
}

// Claim implements cluster.Cache.
func (c *cache) Claim(_, name string) (*corev1.PersistentVolumeClaim, error) {
	return cached[claimObject](c, kindClaim, name)
}

// requestRecovery is a user who asks for a recovery: the API takes it only while the
// status says that the quorum is lost and no recovery is under way.
func (w *World) requestRecovery() {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found || !conditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) || cluster.Status.Recovery.InProgress() {
		return
	}
	var members []string
	survivors := 0
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		members = append(members, m.Name)
		if m.RaftIndex > 0 {
			survivors++
		}
	}
	if survivors == 0 {
		return
	}
	w.stats.fault("recover")
	w.recoveries++
	id := fmt.Sprintf("request-%d", w.recoveries)
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
		c.Status.Recovery = &v1beta2.RecoveryStatus{
			ID: id, Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
			OldMembers: members, RequestedAt: metav1.NewTime(w.Now()),
		}
	})
}

// recordOf returns the record of the last recovery on the service for members.
func recordOf(service *corev1.Service) *v1beta2.RecoveryStatus {
	record := &v1beta2.RecoveryStatus{}
	if json.Unmarshal([]byte(service.Annotations[resources.AnnotationRecovery]), record) != nil {
		return nil
	}
	return record
}

// reseeding is called when the seed of a recovery is about to be filled.
func (c *checks) reseeding(l *lineage, pod *corev1.Pod) {
	service, found := lookup[*corev1.Service](c.w.store, kindService, clusterName)
	record := (*v1beta2.RecoveryStatus)(nil)
	if found {
		record = recordOf(service)
	}
	if !resources.Hidden(pod.Labels, clusterName) {
		c.violated("S4", "seed %s is filled in the sight of clients", l.seed)
	}
	if l.token == l.owner || !strings.HasPrefix(l.token, l.owner) {
		c.violated("S4", "seed %s of a recovery has token %q", l.seed, l.token)
	}
	if record == nil || record.Seed != l.seed {
		c.w.trace("seed %s is filled although it is not in the record any more", l.seed)
	}
}

// switching is called when the record says that the old members go out of service.
func (c *checks) switching(service *corev1.Service) {
	record := recordOf(service)
	c.beginning(service, record)
	if record == nil || record.Phase != v1beta2.RecoveryPhaseSwitching && record.Phase != v1beta2.RecoveryPhaseCleaning {
		return
	}
	c.restoredOnce(ownerOf(service), record.ID, record.ClusterID)
	l := c.recorded[ownerOf(service)]
	if l == nil || l.replaced || fmt.Sprintf("%x", l.clusterID) == record.ClusterID {
		return
	}
	if c.acting != nil && record.Trigger != v1beta2.RecoveryTriggerRestore && c.judge(l).live && !c.w.disturbed(&c.acting.look) {
		c.violated("S1", "recovery of %s, whose quorum serves", describeMembers(l.members))
	}
	c.overtaken(l, record)
	l.replaced = true
	c.w.stats.Recovered++
	c.w.trace("replaced: %s", describeMembers(l.members))
}

// overtaken: what the cluster goes on from has every acknowledged write that one of those
// has who answered the controller, unless a person has said from whom to go on.
func (c *checks) overtaken(l *lineage, record *v1beta2.RecoveryStatus) {
	h := c.w.histories[l.owner]
	seed := c.w.etcd.seedOf(record)
	if c.acting == nil || record.Trigger == v1beta2.RecoveryTriggerRestore || record.Member != "" || c.w.disturbed(&c.acting.look) ||
		seed == nil || h == nil || h.lineage != l {
		return
	}
	for _, p := range c.w.etcd.processes {
		pod, found := p.run.pod()
		if p.dir.lineage != l || !found || pod.DeletionTimestamp != nil {
			continue
		}
		for _, a := range h.acked {
			if a.index <= c.acting.look.applied[p.run.name] && p.dir.holds(a) && !seed.holds(a) {
				c.violated("S1", "recovery without write %d, which was acknowledged as entry %d, and %s has it", a.number, a.index, p.run.name)
				return
			}
		}
	}
}

// holds is true if a log has a write where it was acknowledged.
func (d *dataDir) holds(a ackedWrite) bool {
	return a.index <= len(d.log) && d.log[a.index-1].write == a.number
}

// seedOf returns the data that a cluster goes on from.
func (e *etcdWorld) seedOf(record *v1beta2.RecoveryStatus) *dataDir {
	for _, l := range slices.Backward(e.lineages) {
		if l.seed == record.Seed && fmt.Sprintf("%x", l.clusterID) == record.ClusterID && len(l.order) > 0 {
			return l.dirs[l.order[0]]
		}
	}
	return nil
}

// beginning is called with every record: what begins by itself must not, while members may
// come back that are enough. That is judged by what each of them has applied.
func (c *checks) beginning(service *corev1.Service, record *v1beta2.RecoveryStatus) {
	if record == nil || record.Phase != v1beta2.RecoveryPhaseSeeding || record.Trigger != v1beta2.RecoveryTriggerAutomatic {
		return
	}
	if l := c.recorded[ownerOf(service)]; l != nil && c.acting != nil && !c.w.disturbed(&c.acting.look) && c.recoverable(l) {
		c.violated("S1", "a recovery begins by itself although %s may come back", describeMembers(l.members))
	}
}

// sourceless is true for a recovery that waits, and says so, because the last member went
// while it was read, and nothing is left: only a person can know that the new first member
// holds nothing either.
func (w *World) sourceless(cluster *v1beta2.EtcdCluster, l *lineage) bool {
	r, b := cluster.Status.Recovery, cluster.Status.BlockedBy
	return r.InProgress() && r.Phase == v1beta2.RecoveryPhaseSeeding && r.Trigger != v1beta2.RecoveryTriggerRestore && b != nil && b.Reason == "SourceLost" && !l.remains()
}

// giveUpSeed is a person who ends such a recovery as the status says.
func (w *World) giveUpSeed(name string) string {
	if pod, found := lookup[*corev1.Pod](w.store, kindPod, name); found {
		_ = w.store.deleteObject(kindPod, name, metav1.Preconditions{UID: &pod.UID})
	}
	return "a recovery was given up"
}

// askedToRecover is what is waited for after a person has asked for a recovery.
const askedToRecover = "a recovery was asked for"

// goalRecovered returns what a cluster that has lost its quorum still waits for if it
// can go on from a member that answers.
func (w *World) goalRecovered(cluster *v1beta2.EtcdCluster, l *lineage) string {
	if w.sourceless(cluster, l) {
		return w.giveUpSeed(cluster.Status.Recovery.Seed)
	}
	if cluster.Status.Recovery.InProgress() {
		return "a recovery is under way"
	}
	survivors, gone, voters := 0, 0, 0
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		if m.Role != v1beta2.MemberRoleLearner && m.Role != v1beta2.MemberRolePending {
			voters++
			if m.Pod == "" && m.Claim == "" {
				gone++
			}
		}
	}
	for _, p := range w.etcd.processes {
		pod, found := p.run.pod()
		if p.dir.lineage == l && p.serves && found && pod.DeletionTimestamp == nil && pod.Labels[resources.LabelApp] != "" {
			survivors++
		}
	}
	switch {
	case survivors == 0 && w.plan.Automatic && *cluster.Spec.Replicas > 0 && cluster.Status.LastBackup != nil && w.nothingIsLeft():
		return "it does not restore its last backup by itself"
	case survivors == 0 || *cluster.Spec.Replicas == 0:
		return ""
	case w.plan.Recovers:
		w.requestRecovery()
		return askedToRecover
	case w.plan.Automatic && voters-gone < voters/2+1 && !w.mayHaveBeenLetVote(cluster):
		return "it does not recover by itself"
	default:
		return ""
	}
}

// mayHaveBeenLetVote is true if a status leaves open who votes: a member that is there and
// does not answer was a learner, or had no name yet and votes from the beginning.
func (w *World) mayHaveBeenLetVote(cluster *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		open := m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending && w.plan.line()[0] == versionLines[1][0]
		return open && (m.Pod != "" || m.Claim != "") && m.RaftIndex == 0
	})
}

// goOn makes the history of a cluster that of another etcd. What that has not from the
// one before was lost with the quorum.
func (c *checks) goOn(was, is *lineage) {
	h := c.w.histories[is.owner]
	if h == nil || h.lineage != was {
		return
	}
	h.lineage = is
	var kept []ackedWrite
	for _, d := range is.dirs {
		for _, a := range h.acked {
			if d.holds(a) {
				kept = append(kept, a)
			}
		}
		break // the seed is the only one
	}
	c.w.stats.WritesLost += len(h.acked) - len(kept)
	h.acked = kept
}

// recoveryEvents are drawn apart from the others, so that schedules without them stay
// what they were. A cluster whose authority is rotated meanwhile is left out.
func recoveryEvents(s *Schedule) {
	d := newDice(s.Seed, 3)
	rotates := slices.ContainsFunc(s.Events, func(e Event) bool { return e.Kind == EventRotateAuthority || e.Kind == EventDeleteSecret })
	if !s.Deadly || rotates || !d.chance(75) {
		return
	}
	s.Automatic, s.Recovers = d.chance(40), d.chance(60)
	at := d.between(10*time.Second, 5*time.Minute)
	s.Events = append(s.Events, Event{At: at, Kind: EventDisaster, A: d.IntN(1 << 16), B: d.IntN(1 << 16)})
	for range 1 + d.IntN(4) {
		s.Events = append(s.Events, Event{At: at + d.between(0, 2*time.Minute), Kind: EventRecover})
	}
}

// destroyMajority takes pods and volumes of all members but a minority.
func (w *World) destroyMajority(e Event) {
	pods := w.store.list(kindPod)
	if len(pods) < 2 {
		return
	}
	keep := 1 + e.B%((len(pods)+1)/2)
	for i := range len(pods) - keep {
		name := pods[(e.A+i)%len(pods)].GetName()
		w.store.remove(kindPod, name)
		w.store.remove(kindClaim, name)
	}
}
