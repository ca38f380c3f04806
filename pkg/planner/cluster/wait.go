// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// How long to wait before looking again when no event is expected. Pod events and responses
// of etcd come earlier in every normal case.
const (
	// recheckNow is for the step after one that etcd has just confirmed.
	recheckNow = time.Millisecond
	// recheckUnannounced is for the step after certificates were issued or an alarm was disarmed,
	// which no event tells.
	recheckUnannounced = 50 * time.Millisecond
	// recheckCatchUp is for a learner that still has much to read.
	recheckCatchUp = 500 * time.Millisecond
	// recheckWaiting is for something that an event should announce.
	recheckWaiting = 5 * time.Second
	// recheckQuorum is for a cluster that may be without a quorum.
	recheckQuorum = 2 * time.Second
	// recheckSteady is for a cluster at rest: etcd does not announce a change of
	// leader or an alarm.
	recheckSteady = 15 * time.Second
)

const (
	// noActionNeeded is the remedy of a wait that ends by itself.
	noActionNeeded = diagnosis.NoActionYet
	// serveAgain is the remedy of a step that could cost the quorum.
	serveAgain = "Bring back the members that do not serve."
)

// Wait is something that must happen before the controller can go on.
type Wait struct {
	// Reason in one CamelCase word.
	Reason Reason
	// Message says what was found.
	Message string
	// Remedy says what lets the controller continue.
	Remedy string
}

func wait(after time.Duration, reason Reason, message, remedy string) Plan {
	return Plan{RequeueAfter: after, Wait: &Wait{Reason: reason, Message: message, Remedy: remedy}}
}

// waitForPod waits for a pod. If Kubernetes says why the pod does not run, that is the reason of the wait.
func waitForPod(cluster *v1beta2.EtcdCluster, p *Pod, after time.Duration, otherwise Wait) Plan {
	why, text := "", ""
	if p != nil {
		why, text, _ = strings.Cut(p.Waiting, ": ")
	}
	known, found := podWaits[why]
	switch {
	case p == nil || p.Waiting == "":
	case !found:
		otherwise.Message += ": " + p.Waiting
	default:
		otherwise.Reason = known.reason
		otherwise.Message += ": " + strings.TrimSuffix(fill(known.fact, text), ": ")
		otherwise.Remedy = rowOf(known.reason).Remedy
		if known.remedy != "" {
			otherwise.Remedy = fill(known.remedy, fmt.Sprintf("kubectl patch etcdcluster %s -n %s --type=merge -p", cluster.Name, cluster.Namespace))
		}
	}
	return Plan{RequeueAfter: after, Wait: &otherwise}
}

// isAtRisk is true for a plan that waits for members that serve: no member goes, or stops, before that.
func isAtRisk(plan Plan) bool { return plan.Wait != nil && plan.Wait.Reason == ReasonQuorumAtRisk }

func waitReady(m *Member) Plan {
	return wait(recheckWaiting, ReasonWaitingForReady,
		"member "+m.Name+" serves and its pod is not ready yet", noActionNeeded)
}

// awaitPrepared waits for the pod of the next member. upkeepPrepared makes it.
func awaitPrepared(o *Observed) Plan {
	var next *Pod
	message := "the pod of the next member is being created"
	for i := range o.Prepared {
		if p := &o.Prepared[i]; isUsable(o, p) && memberByName(o.Etcd.Members, p.Name) == nil {
			next, message = p, "pod "+p.Name+" of the next member does not run yet"
			break
		}
	}
	if next != nil && awaitsPutBack(o, next) {
		return waitForRewriter(o, next, nil)
	}
	return waitForPod(o.Cluster, next, recheckWaiting, Wait{ReasonWaitingForPod, message, noActionNeeded})
}
