// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ruleBootstrap starts the cluster: one seed, whose name was claimed by the peer
// service. Until etcd has answered, the record says so and the status too, the service
// for clients does not exist, so no client can have written to a seed that is lost
// before; it is made again under the same name and token then, and is the same seed.
func ruleBootstrap(o *Observed) (Plan, bool) {
	if o.bootstrapped() {
		return Plan{}, false
	}
	if o.seedServes() {
		return Plan{Actions: []Action{RecordBootstrap{ClusterID: o.Etcd.ClusterID, Log: o.bornReadable()}}, RequeueAfter: recheckWaiting}, true
	}
	if o.awaitsRestore() {
		return wait(recheckWaiting, "WaitingForRestore",
			"the cluster starts with the data of EtcdRestore "+o.Cluster.Annotations[v1beta2.AnnotationRestore],
			"nothing, unless it lasts; see the status of that EtcdRestore"), true
	}
	if o.PeerService.Seed == "" {
		return wait(recheckWaiting, "SeedUnknown",
			"the record of the bootstrap is missing from service "+o.Cluster.Name,
			"delete that service if the cluster never had data"), true
	}
	for _, name := range o.remains() {
		if o.pod(name) != nil && name != o.PeerService.Seed {
			return wait(recheckWaiting, "SeedUnknown",
				"pod "+name+" exists and the record of the bootstrap names "+o.PeerService.Seed,
				"delete that pod if the cluster never had data"), true
		}
	}
	if o.size() == 0 {
		return wait(0, "NoMembersWanted", "the cluster was created with size 0 and has no data yet", "set spec.size"), true
	}
	plan := startSeed(o)
	if o.pod(o.PeerService.Seed) != nil {
		plan.Actions = append(plan.Actions, o.prepare()...)
	}
	return plan, true
}

// awaitsRestore is true for a cluster that was made to be filled from a backup. It must
// never start empty.
func (o *Observed) awaitsRestore() bool {
	return o.Cluster.Annotations[v1beta2.AnnotationRestore] != ""
}

// seedServes is true if the seed that was claimed answers and is here to stay. If
// somebody wiped its name from the record, everything that belongs to the cluster must
// be a member of the etcd that answers.
func (o *Observed) seedServes() bool {
	if !o.Etcd.Linearizable {
		return false
	}
	if seed := o.PeerService.Seed; seed != "" {
		return o.member(seed) != nil && !o.pod(seed).gone()
	}
	for _, name := range o.remains() {
		if o.member(name) == nil {
			return false
		}
	}
	return o.healthyVoters() > 0
}

// seedVersion returns the version that the seed starts with: the declared one, unless its
// volume was made for an older minor version. What has run there may have left a log that
// the newer one cannot read, so it goes on from there and the rollout takes the step.
func (o *Observed) seedVersion(seed string) string {
	target, has := parse(o.Cluster.Spec.Version), o.claim(seed).version()
	if target == nil || has == nil || target.Minor() <= has.Minor() {
		return ""
	}
	return has.String()
}

func startSeed(o *Observed) Plan {
	seed := o.PeerService.Seed
	pod, pinned := o.pod(seed), o.seedVersion(seed)
	outdated := pod != nil && pod.Outdated
	next := "nothing, unless it lasts"
	if pinned != "" {
		outdated = pod != nil && pod.Version != pinned
		next = fmt.Sprintf("nothing, unless it lasts: its volume was made for %s, which must run before %s; if that does not start, set spec.version to another release of its minor version",
			pinned, o.Cluster.Spec.Version)
	}
	switch {
	case pod == nil:
		var actions []Action
		if o.persistent() && o.claim(seed) == nil {
			actions = append(actions, CreateClaim{Name: seed})
		}
		return Plan{Actions: append(actions, CreateSeed{Name: seed, Version: pinned}), RequeueAfter: recheckWaiting}
	case !pod.Terminating && (pod.Finished || !pod.Running && (outdated || o.stale(pod))):
		// It ended as a whole, or it does not run as it was declared before.
		return Plan{Actions: []Action{DeletePod{Name: pod.Name, UID: pod.UID, Seed: true}}, RequeueAfter: recheckWaiting}
	default:
		plan := wait(recheckWaiting, "WaitingForSeed",
			"the first member "+seed+" does not answer yet"+waitingFor(pod), next)
		if o.persistent() && o.claim(seed) == nil && !pod.Running {
			// Somebody deleted the volume before the pod could use it.
			plan.Actions = []Action{CreateClaim{Name: seed}}
		}
		return plan
	}
}

// knownClusterID is what can be said of the cluster ID when its record is gone.
func (o *Observed) knownClusterID() string {
	if o.Etcd.ClusterID != 0 {
		return strconv.FormatUint(o.Etcd.ClusterID, 16)
	}
	return unknownClusterID
}

// unknownClusterID stands in the record of a cluster that was bootstrapped and
// whose ID could not be asked for when the record was made again.
const unknownClusterID = "unknown"

func waitingFor(p *Pod) string {
	if p == nil || p.Waiting == "" {
		return ""
	}
	return ": " + p.Waiting
}
