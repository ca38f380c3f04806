// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

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

// trusts remembers the CAs that a process trusts: those in its volumes when it started.
func (p *Process) trusts() {
	if len(p.Run.Mounts()) == 0 {
		return
	}
	p.Trust = map[string][]byte{}
	for name, secret := range p.Run.Mounts() {
		p.Trust[name] = secret.Data[corev1.ServiceAccountRootCAKey]
	}
}

// OwnerOf returns the UID of the EtcdCluster that an object belongs to.
func OwnerOf(object metav1.Object) string {
	if ref := metav1.GetControllerOf(object); ref != nil {
		return string(ref.UID)
	}
	return object.GetAnnotations()[resources.AnnotationClusterUID]
}

var (
	errRemoved  = errors.New("the member has been permanently removed from the cluster")
	errMismatch = errors.New("error validating peerURLs: member count is unequal")
	errNoPeer   = errors.New("cannot fetch cluster info from peer urls")
	errOldLog   = errors.New("unmarshal should never fail")
	errFlag     = errors.New("unrecognized environment variable")
	errDamaged  = errors.New("failed to read WAL, cannot be repaired")
	errUnlisted = errors.New("could not find local name in the initial cluster configuration")
)

// CannotStart is true for a pod whose declaration makes etcd end at once.
func CannotStart(pod *corev1.Pod) bool { return environment(pod, BadEnvironment) }

// Start is what etcd does first. An error ends the process.
func (e *World) Start(r Container, dir *DataDir, pod *corev1.Pod) (*Process, error) {
	args := parseArguments(pod)
	p := &Process{
		Run: r, Dir: dir, Version: e.versionIn(Image(pod)), deaf: environment(pod, DeafEnvironment), strict: args.strict, snapshotCount: args.snapshotCount,
		Started: e.Elapsed, heard: e.Elapsed, patience: e.Dice.Between(time.Second, 2*time.Second), match: map[uint64]int{}, Stuck: dir.Hung,
		quota: resources.QuotaOf(pod).Bytes,
	}
	p.verifies = verifiesNames(pod, p.Version)
	delete(e.Upgrading, r.UID())
	if CannotStart(pod) {
		return nil, errFlag
	}
	if dir.Damaged {
		return nil, errDamaged
	}
	if err := e.runInitContainers(r, dir, pod); err != nil {
		return nil, err
	}
	if dir.IsEmpty() {
		if err := e.initialize(r, dir, args); err != nil {
			return nil, err
		}
	}
	if p.snapshotCount == 0 {
		p.snapshotCount = defaultSnapshotCount(p.Version)
	}
	p.Members, p.Applied = dir.Members, dir.commit
	if dir.holdsUnreadable(p.Version) {
		return nil, errOldLog
	}
	if slices.Contains(p.Members.removed, dir.Id) {
		return nil, errRemoved
	}
	dir.Lineage.learners = dir.Lineage.learners && !p.strict
	p.trusts()
	e.Processes = append(e.Processes, p)
	e.Observer.Started(p)
	e.Observer.CertificatesChanged()
	dir.Version = p.Version
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

// environment is true if etcd in a pod has a variable.
func environment(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	})
}

// NeverStarts is true for a pod with which etcd ends at every start.
func NeverStarts(pod *corev1.Pod) bool { return environment(pod, BadEnvironment) }

// initialize fills an empty directory: for a new cluster, or as the member that the
// others have added.
func (e *World) initialize(r Container, dir *DataDir, args arguments) error {
	if !slices.Contains(args.names, args.name) {
		return errUnlisted
	}
	if args.state == "new" {
		e.bootstrap(r, dir, args)
		return nil
	}
	remote := e.firstPeer(r, args)
	if remote == nil {
		return errNoPeer
	}
	if len(remote.Members.Peers) != len(args.urls) {
		return errMismatch
	}
	for _, url := range args.urls {
		if remote.Members.ByURL(url) == nil {
			return fmt.Errorf("%w: %s", errMismatch, url)
		}
	}
	self := remote.Members.ByURL(args.url)
	e.Observer.Joining(r, dir, self.Id, remote.Dir.Lineage)
	dir.become(self.Id, args.name, args.url, remote.Dir.Lineage)
	return nil
}

func (e *World) bootstrap(r Container, dir *DataDir, args arguments) {
	pod, _ := r.Pod()
	l := &Lineage{
		Owner: OwnerOf(pod), number: len(e.Lineages), BootstrapMember: args.name, Token: args.token,
		learners: !args.strict, ClusterID: hash(append([]string{args.token}, args.urls...)...), Dirs: map[uint64]*DataDir{},
	}
	e.Observer.Bootstrapping(l)
	e.Lineages = append(e.Lineages, l)
	for i, url := range args.urls {
		id := hash(args.token, url)
		dir.Log = append(dir.Log, Entry{term: 1, Kind: entryAddVoter, member: Peer{Id: id, Url: url}})
		if args.names[i] == args.name {
			dir.become(id, args.name, url, l)
		}
	}
	dir.Term, dir.commit = 1, len(dir.Log)
	for i := range dir.Log {
		dir.Members = dir.Members.apply(&dir.Log[i])
	}
	l.Members = dir.Members
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// firstPeer returns the member of the initial cluster that responds and whose URL sorts first:
// etcd asks in this order, and believes the first list.
func (e *World) firstPeer(r Container, args arguments) *Process {
	if !e.Network.IsResolvable() {
		return nil
	}
	var first *Process
	for _, p := range e.Processes {
		if p.Dir.Name == args.name || !slices.Contains(args.names, p.Dir.Name) || !p.linked || e.isCut(p.Run.Name(), r.Name()) || len(p.Members.Peers) == 0 {
			continue
		}
		if first == nil || p.Dir.Url < first.Dir.Url {
			first = p
		}
	}
	return first
}

// Image returns the image of etcd in a pod.
func Image(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == resources.ContainerName {
			return c.Image
		}
	}
	return ""
}

// versionOf returns the version in the tag of an image.
func versionOf(image string) string {
	_, tag, _ := strings.Cut(image, ":v")
	return tag
}

// BadEnvironment is a variable with which etcd does not start.
const BadEnvironment = "ETCD_NO_SUCH_FLAG"
