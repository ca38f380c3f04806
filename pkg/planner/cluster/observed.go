// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strconv"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Observed is everything that a decision is made from. Pods and claims must have
// been read before etcd was asked: a pod is admitted only after its member was added,
// so one of Pods that is not in the member list then belongs to no member.
type Observed struct {
	// Now is the one time of this observation.
	Now time.Time
	// Cluster is the object, with the status that was last written.
	Cluster *v1beta2.EtcdCluster
	// NewName is a member name that was never used.
	NewName string
	// Template is the hash of what is declared about pods now.
	Template string

	PeerService   PeerService
	ClientService ObjectState
	// ClientServiceFixed says what of its template that service cannot follow while it
	// exists; empty if it can follow it all.
	ClientServiceFixed  string
	PodDisruptionBudget PodDisruptionBudget

	// Unmarked are objects of this cluster that do not say whose they are, or whether the
	// cluster is protected, as they should.
	Unmarked []Object

	Pods   []Pod
	Claims []Claim
	// Prepared and PreparedClaims are pods and PVCs of this cluster that no member has
	// used yet. They are not among Pods and Claims: to every rule about members it is as
	// if they did not exist.
	Prepared       []Pod
	PreparedClaims []Claim
	// Certificates that the cluster needs, in a fixed order; none without spec.TLS.
	Certificates []Certificate
	// Authority is set for a cluster whose certificates are issued here.
	Authority *Authority
	// CertManager is set for a cluster whose certificates cert-manager issues.
	CertManager *CertManager
	// Trust names the authorities that members shall trust; empty if that is not known.
	Trust  string
	Etcd   Etcd
	Reseed Reseed
	// Task must have been read before etcd was asked: what a member says then is what
	// it is after the task.
	Task Task
}

// ObjectState compares an object of the controller's with what it should be.
type ObjectState int

// Values of ObjectState.
const (
	// Missing: there is no such object.
	Missing ObjectState = iota
	// Current: it is there and as it should be.
	Current
	// Drifted: it is there and a field that the controller owns differs.
	Drifted
	// Foreign: an object of that name is there and belongs to somebody else.
	Foreign
)

// PeerService is the headless service of the members. It carries the record of the
// bootstrap, because it is made exactly once and outlives every pod.
type PeerService struct {
	State ObjectState
	// Seed is the name that was claimed for the one seed when the service was made.
	Seed string
	// ClusterID is etcd's cluster ID in hexadecimal, recorded once the seed answered.
	ClusterID string
	// Log is the record of what is in the log of etcd.
	Log LogRecord
	// Recovery is the record of the last recovery; nil if there was none.
	Recovery *v1beta2.RecoveryStatus
	// Recoveries are the IDs of those that were ever begun.
	Recoveries []string
}

// Reseed is the seed of a recovery under way.
type Reseed struct {
	// Pod is nil if there is none.
	Pod *Pod
	// Hidden is true while the pod or its volume is not behind the services.
	Hidden bool
	// Serves is true if it answers and leads.
	Serves bool
	// ClusterID that it answers with.
	ClusterID uint64
}

// PodDisruptionBudget is the budget that guards the voters.
type PodDisruptionBudget struct {
	State ObjectState
	// MinAvailable of the live object.
	MinAvailable int
}

// Pod is a pod that carries the labels of the cluster.
type Pod struct {
	Name string
	UID  string
	Node string
	// Owned is true if the controller reference has the UID of the cluster.
	Owned bool
	// Terminating pods were asked to go and do not come back.
	Terminating bool
	// DeletionRequested is when the deletion of a terminating pod was requested, and EndsBy
	// when its node must have ended it.
	DeletionRequested, EndsBy time.Time
	// Finished pods failed or completed as a whole (evicted, node shut down).
	Finished bool
	// Running is true while the etcd container runs, and Ends is how often one has ended.
	Running bool
	Ends    int
	// Ready is the pod's own condition; false while Restarting.
	Ready bool
	// Restarting is true while the container runs, or seems to, that a change of the
	// image has superseded.
	Restarting bool
	// Unstarted is true if no container was made yet from the image that the pod asks
	// for since that was changed.
	Unstarted bool
	// Role is what the label of the pod says that its member is.
	Role PodRole
	// Routed is true while the service for clients leads to the pod.
	Routed bool
	// Version of etcd that the pod was made for.
	Version string
	// Outdated is true if the image that was requested for it is not the one that is
	// wanted now. An admission policy may have made it another one; that is no difference.
	Outdated bool
	// Template is the hash of what was declared when it was made; empty if unknown.
	Template string
	// Restart names the request to restart after which it was made.
	Restart string
	// Peers are the names of the members that the pod was started to join, its own
	// among them; nil if that is not known.
	Peers []string
	// MayFill is true if etcd in it would begin anew on an empty directory, which is for
	// members that have not joined yet.
	MayFill bool
	// Trust names the authorities that were to be trusted when the pod was made; empty if
	// that is not known.
	Trust string
	// Authorities are those by which its member has known other members since it started,
	// and Accepts is true if it takes what they show now for that.
	Authorities string
	Accepts     bool
	// Certificates names those that the kubelet of the pod was told of last, and
	// Refreshed is true if these are the ones of now.
	Certificates string
	Refreshed    bool
	// Waiting says why the pod does not run, in the words of Kubernetes.
	Waiting string
	// Made is when the pod was made.
	Made time.Time
}

// PodRole is the role that a pod is labelled with. The disruption budget counts
// voters and those that leave; clients are sent to voters only.
type PodRole string

// Values of PodRole.
const (
	PodVoter   PodRole = "voter"
	PodLearner PodRole = "learner"
	// PodLeaving is a voter whose clients are sent elsewhere, because it is about to be
	// removed, to restart or to be defragmented.
	PodLeaving PodRole = "leaving"
)

// gone is true if nothing may count on the pod any more: there is none, or it is about to
// end. Its member may serve on meanwhile, for as long as its node hears nothing of it.
func (p *Pod) gone() bool {
	return p == nil || p.Terminating || p.Finished
}

// Claim is a PersistentVolumeClaim that holds the data of one member.
type Claim struct {
	Name        string
	UID         string
	Owned       bool
	Terminating bool
	// Version of etcd that was last to run on it.
	Version string
	// Drifted is true if its marks are not those of the cluster, or its labels are not
	// those of its member.
	Drifted bool
	// Growth compares the size of the volume with the declared one, and GrowthWhy says what
	// is in the way.
	Growth    resources.Growth
	GrowthWhy string
}

// Etcd is what etcd said when it was asked.
type Etcd struct {
	// Linearizable is true if a member list was read through a quorum. Nothing else
	// here may be used for a membership change if it is false.
	Linearizable bool
	// ClusterID is 0 if no member answered.
	ClusterID uint64
	// Members in the order of their IDs. If Linearizable is false they are those of
	// the last status, with what each of them answered now.
	Members []Member
	// Err says why the list could not be read.
	Err string
	// Denied is true if a member has refused to answer the controller: etcd's own
	// authorization is on and does not know it.
	Denied bool
	// NoSpace holds the IDs of the members that have raised the alarm of a full
	// database, in their order.
	NoSpace []uint64
}

// Health is whether a member serves.
type Health int

// Values of Health.
const (
	// Unknown: it could not be asked.
	Unknown Health = iota
	// Unhealthy: it answered that it cannot serve, or it runs and does not answer.
	Unhealthy
	// Healthy: it answered and knows a leader.
	Healthy
)

// Reasons why a member is not healthy.
const (
	// ReasonNoLeader: it answered and knows no leader.
	ReasonNoLeader = "NoLeader"
	// ReasonNoAnswer: it did not answer in time.
	ReasonNoAnswer = "NoAnswer"
	// ReasonNoPod: there is no pod to ask.
	ReasonNoPod = "NoPod"
	// ReasonNotStarted: it was added and has not joined yet.
	ReasonNotStarted = "NotStarted"
	// ReasonAlarm: it raised an alarm.
	ReasonAlarm = "Alarm"
)

// Member is one member of the etcd cluster.
type Member struct {
	ID   uint64
	Name string
	// Stranger is true if its peer URL is not one that this controller gives.
	Stranger bool
	// Started is false until the member has published its name.
	Started bool
	Learner bool
	Health  Health
	// Reason (one word) and Message say why it is not healthy.
	Reason, Message string
	// Leader is the ID of the leader that the member sees; 0 if none.
	Leader  uint64
	Version string
	DBSize  int64
	// Quota is the size in bytes at which it refuses writes; 0 if it is not known.
	Quota       int64
	RaftIndex   uint64
	RaftApplied uint64
	Alarms      []string
	// Shows is true if the member was seen to show certificates that the present
	// authority signed. It is looked at only while an older one is trusted, too.
	Shows bool
	// View is what it says of the membership; nil if it did not answer, or if the list
	// was read through a quorum.
	View *View
}

func (m *Member) id() string { return strconv.FormatUint(m.ID, 16) }

// pod returns the pod called name that belongs to the cluster, or nil.
func (o *Observed) pod(name string) *Pod {
	for i := range o.Pods {
		if o.Pods[i].Name == name && o.Pods[i].Owned {
			return &o.Pods[i]
		}
	}
	return nil
}

// member returns the member called name, or nil.
func (o *Observed) member(name string) *Member {
	for i := range o.Etcd.Members {
		if o.Etcd.Members[i].Name == name {
			return &o.Etcd.Members[i]
		}
	}
	return nil
}

// size is the number of voters that is wanted.
func (o *Observed) size() int {
	if o.Cluster.Spec.Replicas == nil {
		return 0
	}
	return int(*o.Cluster.Spec.Replicas)
}

// persistent is true if members keep their data on volumes of their own.
func (o *Observed) persistent() bool {
	return o.Cluster.Spec.Pod != nil && o.Cluster.Spec.Pod.PersistentVolumeClaimSpec != nil
}

// bootstrapped is true if this cluster has ever served. More than one place is
// asked, so that losing one of them never leads to a second seed.
func (o *Observed) bootstrapped() bool {
	if o.PeerService.ClusterID != "" && o.PeerService.State != Foreign {
		return true
	}
	if o.ClientService == Current || o.ClientService == Drifted {
		return true // clients are let in only after the record was written
	}
	return o.statusSaysServed() // even if a seed has answered: no client was let in to it
}

// statusSaysServed is true once the status has said that the cluster runs. That is
// the one proof that nobody can delete without deleting the cluster, so clients are
// let in only after it was written.
func (o *Observed) statusSaysServed() bool {
	switch o.Cluster.Status.Phase {
	case v1beta2.ClusterPhaseRunning, v1beta2.ClusterPhaseFailed, v1beta2.ClusterPhaseHibernated:
		return true
	case v1beta2.ClusterPhaseNone, v1beta2.ClusterPhaseCreating:
		return false
	default:
		return true
	}
}

// voters returns the voting members.
func (o *Observed) voters() []*Member {
	var voters []*Member
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// leader returns the member that most of the healthy voters see as leader, or nil
// if they see none or do not agree.
func (o *Observed) leader() *Member {
	votes := map[uint64]int{}
	total := 0
	for _, m := range o.voters() {
		if m.Health == Healthy && m.Leader != 0 {
			votes[m.Leader]++
			total++
		}
	}
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; 2*votes[m.ID] > total {
			return m
		}
	}
	return nil
}

// quorum is how many of n voters must agree.
func quorum(n int) int { return n/2 + 1 }

// healthyVoters counts the voters that serve and whose pods are here to stay,
// leaving out the ones named.
func (o *Observed) healthyVoters(except ...*Member) int {
	n := 0
	for _, m := range o.voters() {
		if m.Health == Healthy && !slices.Contains(except, m) && !o.pod(m.Name).gone() {
			n++
		}
	}
	return n
}

// without counts the voters that serve when m does not. Who follows another leader than
// most of them may not reach that one, and cannot be counted on when m goes.
func (o *Observed) without(m *Member) int {
	except, leader := []*Member{m}, o.leader()
	for _, other := range o.voters() {
		if leader != nil && other.Leader != leader.ID {
			except = append(except, other)
		}
	}
	return o.healthyVoters(except...)
}
