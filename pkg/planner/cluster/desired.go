// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// change is what must happen to a member so that its pod is what is declared.
type change int

const (
	// asDeclared: nothing.
	asDeclared change = iota
	// reimage: its container restarts in place with another image, on its data.
	reimage
	// recreate: its pod is made again, on its volume.
	recreate
	// replace: another member takes its place, because its data goes with its pod or is on
	// a node that does not come back. A cordoned node and a request of a user are reasons, too.
	// That one joins first, so it is for the rules about the membership.
	replace
)

// due returns what must happen to a member.
func (o *Observed) due(m *Member) change {
	if o.replaceRequested(m) || o.replacesOnCordonedNode(m) {
		return replace
	}
	return o.dueUnrequested(m)
}

// dueUnrequested returns what must happen to a member even if no user has asked to replace it, or to
// drain its node.
func (o *Observed) dueUnrequested(m *Member) change {
	pod := o.pod(m.Name)
	switch {
	case o.mustBeReplaced(m):
		return replace
	case pod.gone():
		return asDeclared // it comes back as declared, or a new member replaces it
	case o.stale(pod) && o.pvc(m.Name) != nil:
		return recreate
	case o.stale(pod):
		return replace
	case o.otherImage(pod):
		return reimage
	default:
		return asDeclared
	}
}

// stale is true for a pod that was created from an earlier declaration, before the last
// request to restart, or while members had to trust other CAs.
func (o *Observed) stale(p *Pod) bool {
	request := resources.RestartRequest(o.Cluster)
	return (p.Template != "" && o.Template != "" && p.Template != o.Template) || (request != "" && p.Restart != request) || o.certificateFacts().Distrusts(p.Trust)
}

// otherImage is true for a pod that was made for another version, or from another
// repository.
func (o *Observed) otherImage(p *Pod) bool {
	target := parse(o.Cluster.Spec.Version)
	return target != nil && (p.Outdated || !sameVersion(p.Version, target))
}

// surge is how many voters there may be above the desired size: one while a new member
// must replace another.
func (o *Observed) surge() int {
	for _, m := range o.voters() {
		if o.due(m) == replace {
			return 1
		}
	}
	return 0
}

// renew returns the action that makes the pod of a member what is declared. If it may
// not be upgraded now, a pod that is made again keeps its version.
func (o *Observed) renew(m *Member, target *version.Version, upgrade bool, mode RestartMode) Action {
	pod, v := o.pod(m.Name), target.String()
	if o.due(m) == reimage {
		return UpgradePod{Name: pod.Name, UID: pod.UID, Version: v, Mode: mode}
	}
	if !upgrade {
		v = pod.Version
	}
	return RecreatePod{Name: pod.Name, UID: pod.UID, Version: v, Mode: mode}
}
