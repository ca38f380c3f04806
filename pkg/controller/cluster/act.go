// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

const (
	// retrySoon is how long to wait before a second try that is likely to succeed.
	retrySoon = 50 * time.Millisecond
	// retryUnhealthy is when to ask etcd again for a change of its members that it does not
	// make yet: before 3.4 they must have been connected for five seconds.
	retryUnhealthy = 500 * time.Millisecond
	// retryManual is when to try again what fails until a person changes something.
	retryManual = 15 * time.Second
	// retryServiceRejected is the same for the client Service: no other action waits for it.
	retryServiceRejected = 30 * time.Second
)

// ErrPodFailed means that pods of the cluster fail as a whole, such as pods that a node
// evicts or does not admit. Another pod is created after a while.
var ErrPodFailed = errors.New("pods fail")

// observationLife is how long an observation may be acted on. It is shorter than a
// lease, so that what another process did after it took over is not undone.
const observationLife = 10 * time.Second

// outcome is the result of the actions of a plan, apart from errors.
type outcome struct {
	// retryAfter, if not 0, is when to look again instead of when the plan says.
	retryAfter time.Duration
	// wait is what is in the way until a user changes it; nil if nothing is.
	wait *planner.Wait
	// serviceRejected is the reason for which Kubernetes rejects the declared client
	// Service; nil if Kubernetes accepts it.
	serviceRejected error
}

// revised returns the plan with the outcome of its actions: when to look again, and what
// Kubernetes rejects, which belongs in the status.
func (o outcome) revised(plan planner.Plan) planner.Plan {
	if o.retryAfter > 0 {
		plan.RequeueAfter = o.retryAfter
	}
	if o.wait != nil {
		plan.Wait = o.wait
	}
	if o.serviceRejected != nil {
		plan.ServiceRejected = o.serviceRejected.Error()
		if plan.RequeueAfter == 0 || plan.RequeueAfter > retryServiceRejected {
			plan.RequeueAfter = retryServiceRejected
		}
	}
	return plan
}

// waitIfStaleLong has the status report an action that has been stale for long, unless the plan waits for something
// that says more. Such an action is tried less often.
func (o *outcome) waitIfStaleLong(w *planner.Wait, plan planner.Plan) {
	if w == nil {
		return
	}
	o.retryAfter = retryManual
	if plan.Wait == nil {
		o.wait = w
	}
}

// waitFor returns the wait of an error that lasts until a user changes something; nil for an
// error that may end by itself.
func waitFor(err error) *planner.Wait {
	reason, remedy := planner.Reason(""), ""
	switch {
	case errors.Is(err, errServiceRejected): // it has a condition of its own
	case errors.Is(err, reconcile.ErrNamespaceTerminating):
		reason, remedy = planner.ReasonNamespaceTerminating, "No action brings the namespace back. The members that run serve on; what is lost of them is not replaced. "+
			"Kubernetes creates no Job here, so no EtcdBackup runs. Copy the data to your machine with kubectl etcd snapshot save, and restore it into another namespace. To delete the cluster and its data, set spec.deletionProtection=false."
	case errors.Is(err, reconcile.ErrRejected):
		reason, remedy = v1beta2.ReasonPodRejected, "Raise the quota or change the policy that the message names. The controller tries again every few seconds."
	case errors.Is(err, ErrPodFailed):
		reason, remedy = planner.ReasonPodFailed, "Remove the cause that the message names, such as too little room on the nodes. The controller tries again every few seconds."
	case errors.Is(err, etcd.ErrUnhealthy):
		reason, remedy = planner.ReasonEtcdUnhealthy, "No action needed unless this persists. etcd changes its members only after all of them have been connected for some seconds."
	case errors.Is(err, errNotApplied):
		reason, remedy = planner.ReasonWaitingForMember, "No action needed unless this persists. Then look at its disk. After ten minutes without progress, and the time of a copy, another member replaces it."
	case errors.Is(err, etcd.ErrDenied):
		reason, remedy = planner.ReasonEtcdDenied, diagnosis.GrantAccess
	case errors.Is(err, errNodesUnresponsive):
		reason, remedy = v1beta2.ReasonOldMemberMayRun, "Bring these nodes back, or delete the pods of nodes that are off. "+diagnosis.ConfirmNodeOff
	case errors.Is(err, errNotEnded):
		reason, remedy = v1beta2.ReasonOldMemberMayRun, "Bring the node back. "+diagnosis.ConfirmNodeOff+
			" Do not force the deletion of the pod while its node may run."
	case errors.Is(err, errOldDataKept):
		reason, remedy = planner.ReasonRestoreEnded, "Save the data of the PVC that has the name of the old member. Then restore a backup with an EtcdRestore."
	case errors.Is(err, reconcile.ErrNotOwned):
		reason, remedy = planner.ReasonNameConflict, "Delete the object that the message names, if nothing needs it, or create the cluster under another name."
	case errors.Is(err, errCertificateRewritten):
		reason, remedy = planner.ReasonForbidden, "Exclude the Certificate that the message names from the policy. The controller writes it again after some minutes."
	case apierrors.IsForbidden(err):
		reason, remedy = planner.ReasonForbidden, "Give the controller the permission that the message names, or change the policy. The controller tries again."
	}
	if reason == "" {
		return nil
	}
	return &planner.Wait{Reason: reason, Message: err.Error(), Remedy: remedy}
}

// act carries out the plan and stops at the first error. An error of an action that is upkeep,
// such as that of the client Service, does not stop the repair of members. A write that has restarted a
// container ends every plan.
func act(ctx context.Context, r *run, plan planner.Plan) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, observationLife-max(r.Clock.Since(r.seen.Now), 0))
	defer cancel()
	var result outcome
	var failed []error
	stale, rewrites := false, 0
	for _, action := range plan.Actions {
		err := carryOutUnlessBlocked(ctx, r, action, &result)
		if errors.Is(err, errPolicyRestarts) {
			klog.FromContext(ctx).Info("Ended the plan", "action", fmt.Sprintf("%T", action), "err", err)
			result.retryAfter = reconcile.StaleRetry
			break
		}
		switch {
		case errors.Is(err, etcd.ErrLearnerNotReady):
			result.retryAfter = max(retrySoon, plan.RequeueAfter)
		case errors.Is(err, errNotApplied):
			klog.FromContext(ctx).V(2).Info("A learner does not vote yet", "err", err)
			result.retryAfter = retryUnhealthy
		case errors.Is(err, reconcile.ErrStale):
			klog.FromContext(ctx).V(2).Info("Skipped an action: its observation is stale", "action", fmt.Sprintf("%T", action), "err", err)
			result.retryAfter = reconcile.StaleRetry
			if !isUpkeep(action) {
				stale = true
				result.waitIfStaleLong(r.stale.note(r.key, action, r.Clock.Now(), err), plan)
			}
		case errors.Is(err, reconcile.ErrNamespaceTerminating), errors.Is(err, reconcile.ErrNotOwned), errors.Is(err, errNotEnded), errors.Is(err, errNodesUnresponsive), errors.Is(err, errOldDataKept):
			klog.FromContext(ctx).V(2).Info("Waiting for manual action", "action", fmt.Sprintf("%T", action), "err", err)
			if !isUpkeep(action) {
				result.retryAfter = retryManual
			}
		case errors.Is(err, reconcile.ErrRejected), errors.Is(err, ErrPodFailed): // carryOutUnlessBlocked says when to try again
		case errors.Is(err, etcd.ErrUnhealthy):
			klog.FromContext(ctx).V(2).Info("etcd does not accept the change of its members yet", "action", fmt.Sprintf("%T", action), "err", err)
			result.retryAfter = retryUnhealthy
		case errors.Is(err, errCertificateRewritten):
			klog.FromContext(ctx).V(2).Info("A policy changes a Certificate", "err", err)
			rewrites++
		case errors.Is(err, errServiceRejected):
			klog.FromContext(ctx).Info("Kubernetes rejected the client Service", "err", err)
			result.serviceRejected = err
		case err != nil:
			failed = append(failed, fmt.Errorf("%T: %w", action, err))
		}
		// The status reports what upkeep waits for only if nothing else is in the way. A
		// pod that cannot be created is the reason for which the plan waits.
		if w := waitFor(err); w != nil && (!isUpkeep(action) || createsPod(action) || plan.Wait == nil && result.wait == nil) {
			result.wait = w
		}
		if err != nil && !isUpkeep(action) {
			break
		}
	}
	if !stale {
		r.stale.forget(r.key)
	}
	if rewrites > 0 && rewrites == len(plan.Actions) && plan.RequeueAfter >= retrySoon {
		result.retryAfter = retryManual // nothing else has changed that the next look would show
	}
	return result, errors.Join(failed...)
}

// carryOutUnlessBlocked carries out an action. If the creation of a pod has just failed for the
// cluster, it creates no pod until the back-off is over.
func carryOutUnlessBlocked(ctx context.Context, r *run, action planner.Action, result *outcome) error {
	if !createsPod(action) {
		recordFailedPod(r, action)
		return carryOutInTime(ctx, r, action)
	}
	left, err := r.creation.Blocked(r.key, r.Clock.Now())
	if err == nil {
		err = carryOutInTime(ctx, r, action)
		if !errors.Is(err, reconcile.ErrRejected) {
			r.creation.UseName(r.key)
			return err
		}
		reason := fmt.Sprintf("%T %s", action, apierrors.ReasonForError(err))
		if r.creation.Failed(r.key, r.Clock.Now(), reason, r.seen.NewName, err) {
			klog.FromContext(ctx).Info("Kubernetes rejected a pod or PVC", "action", fmt.Sprintf("%T", action), "err", err)
			warning(r, EventPodRejected, "A pod or its PVC was %v", err)
		}
		left, _ = r.creation.Blocked(r.key, r.Clock.Now())
	}
	result.retryAfter = max(retrySoon, left)
	return err
}

// recordFailedPod notes a pod that is deleted because it failed as a whole, since the next pod may
// fail for the same cause.
func recordFailedPod(r *run, action planner.Action) {
	a, deletes := action.(planner.DeletePod)
	if !deletes {
		return
	}
	for _, pods := range [][]planner.Pod{r.seen.Pods, r.seen.Prepared} {
		for i := range pods {
			p := &pods[i]
			if p.UID != a.UID || !p.Finished {
				continue
			}
			if r.creation.PodFailed(r.key, r.Clock.Now(), p.UID, fmt.Errorf("%w: pod %s: %s", ErrPodFailed, p.Name, p.Waiting)) {
				warning(r, EventPodFailed, "Pod %s failed; another pod replaces it: %s", p.Name, p.Waiting)
			}
		}
	}
}

// carryOutInTime rejects an action whose observation has grown old: this process may have
// been stopped for a while, and another process may have acted since.
func carryOutInTime(ctx context.Context, r *run, action planner.Action) error {
	// A negative age is that of an observation before the clock was set back.
	if age := r.Clock.Since(r.seen.Now); age < 0 || age >= observationLife {
		return fmt.Errorf("observed %v ago: %w", age, reconcile.ErrStale)
	}
	return carryOut(ctx, r, action)
}
