// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ErrStale means that a live read contradicted the observation that an action was
// decided on; nothing was done, and the next observation will know better.
var ErrStale = errors.New("the observation is out of date")

const (
	// retrySoon is how long to wait before a second try that is likely to succeed.
	retrySoon = 50 * time.Millisecond
	// retryStale is when to look again after an outdated observation if no event comes
	// before, which it should: a cache that stands still is no reason to run hot.
	retryStale = time.Second
	// retryUnhealthy is when to ask etcd again for a change of its members that it does not
	// make yet: before 3.4 they must have been connected for five seconds.
	retryUnhealthy = 500 * time.Millisecond
	// retryPerson is when to try again what only a person can make possible.
	retryPerson = 15 * time.Second
	// retryServiceRefused is the same for the service for clients, which holds nothing up.
	retryServiceRefused = 30 * time.Second
)

// observationLife is how long an observation may be acted on. It is shorter than a
// lease, so that what another process did after it took over is not undone.
const observationLife = 10 * time.Second

// outcome is what acting came to, apart from errors.
type outcome struct {
	// retryAfter, if not 0, is when to look again instead of when the plan says.
	retryAfter time.Duration
	// wait is what is in the way until somebody changes it; nil if nothing is.
	wait *planner.Wait
	// serviceRefused is why Kubernetes does not let the service for clients be as it is
	// declared; nil if it does.
	serviceRefused error
}

// revised returns the plan with what acting has shown: when to look again, and what
// Kubernetes does not allow, which belongs in the status.
func (o outcome) revised(plan planner.Plan) planner.Plan {
	if o.retryAfter > 0 {
		plan.RequeueAfter = o.retryAfter
	}
	if o.wait != nil {
		plan.Wait = o.wait
	}
	if o.serviceRefused != nil {
		plan.ServiceRefused = o.serviceRefused.Error()
		if plan.RequeueAfter == 0 || plan.RequeueAfter > retryServiceRefused {
			plan.RequeueAfter = retryServiceRefused
		}
	}
	return plan
}

// lasting tells what an error comes from that goes on until somebody changes something;
// nil for one that may pass.
func lasting(err error) *planner.Wait {
	reason, unblock := "", ""
	switch {
	case errors.Is(err, errServiceRefused): // it has a condition of its own
	case errors.Is(err, ErrEnding):
		reason, unblock = "NamespaceTerminating", "No action brings the namespace back. The members that run serve on; what is lost of them is not replaced. "+
			"Back the cluster up and restore it into another namespace. To let the namespace go, set spec.deletionProtection=false."
	case errors.Is(err, ErrRefused):
		reason, unblock = v1beta2.ReasonPodRefused, "Raise the quota or change the policy that the message names. The controller tries again every few seconds."
	case errors.Is(err, ErrPodFailed):
		reason, unblock = "PodFailed", "Remove the cause that the message names, such as too little room on the nodes. The controller tries again every few seconds."
	case errors.Is(err, etcd.ErrUnhealthy):
		reason, unblock = "EtcdUnhealthy", "nothing, unless it lasts: etcd changes its members only after all of them have been connected for some seconds"
	case errors.Is(err, etcd.ErrDenied):
		reason, unblock = "EtcdDenied", planner.UnblockDenied
	case errors.Is(err, errNotEnded):
		reason, unblock = v1beta2.ReasonOldMemberMayRun, "Bring the node back. If it is switched off permanently, delete its Node object or taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. "+
			"Do not force the deletion of the pod while its node may run."
	case errors.Is(err, errNotOurs):
		reason, unblock = "NameTaken", "Delete the object that is named, if nothing needs it, or give the cluster another name."
	case apierrors.IsForbidden(err):
		reason, unblock = "Forbidden", "give the controller the right that is named, or change the policy; it is tried again"
	}
	if reason == "" {
		return nil
	}
	return &planner.Wait{Reason: reason, Message: err.Error(), Unblock: unblock}
}

// act carries out the plan and stops at the first error, except that one in the
// upkeep of services and budget keeps no member from being repaired.
func (r *Reconciler) act(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, observationLife-r.Clock.Since(s.Now))
	defer cancel()
	var result outcome
	var failed []error
	for _, action := range plan.Actions {
		err := r.unlessBlocked(ctx, key, s, action, &result)
		switch {
		case errors.Is(err, etcd.ErrLearnerNotReady):
			result.retryAfter = max(retrySoon, plan.RequeueAfter)
		case errors.Is(err, ErrStale):
			klog.FromContext(ctx).V(2).Info("Did not act on an outdated observation", "action", fmt.Sprintf("%T", action), "err", err)
			result.retryAfter = retryStale
		case errors.Is(err, ErrEnding), errors.Is(err, errNotOurs), errors.Is(err, errNotEnded):
			klog.FromContext(ctx).V(2).Info("Waiting for a person", "action", fmt.Sprintf("%T", action), "err", err)
			if !isUpkeep(action) {
				result.retryAfter = retryPerson
			}
		case errors.Is(err, ErrRefused), errors.Is(err, ErrPodFailed): // unlessBlocked says when to try again
		case errors.Is(err, etcd.ErrUnhealthy):
			klog.FromContext(ctx).V(2).Info("Waiting until etcd allows it", "action", fmt.Sprintf("%T", action), "err", err)
			result.retryAfter = retryUnhealthy
		case errors.Is(err, errServiceRefused):
			klog.FromContext(ctx).Info("The service for clients cannot be as it is declared", "err", err)
			result.serviceRefused = err
		case err != nil:
			failed = append(failed, fmt.Errorf("%T: %w", action, err))
		}
		// What upkeep waits for is said where nothing else is; a pod that cannot be created is
		// why the plan waits for it.
		if w := lasting(err); w != nil && (!isUpkeep(action) || makesPod(action) || plan.Wait == nil && result.wait == nil) {
			result.wait = w
		}
		if err != nil && !isUpkeep(action) {
			break
		}
	}
	return result, errors.Join(failed...)
}

// unlessBlocked carries out an action. It makes no pod for a cluster for which that has
// just failed, and remembers what fails.
func (r *Reconciler) unlessBlocked(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action, result *outcome) error {
	if !makesPod(action) {
		r.noteFailed(key, s, action)
		return r.doInTime(ctx, key, s, action)
	}
	left, err := r.failures.blocked(key, r.Clock.Now())
	if err == nil {
		err = r.doInTime(ctx, key, s, action)
		if !errors.Is(err, ErrRefused) {
			r.failures.used(key)
			return err
		}
		reason := fmt.Sprintf("%T %s", action, apierrors.ReasonForError(err))
		if r.failures.note(key, r.Clock.Now(), reason, s.NewName, err) {
			klog.FromContext(ctx).Info("Kubernetes rejects what a member needs", "action", fmt.Sprintf("%T", action), "err", err)
			r.warning(s, EventPodRejected, "A pod or its PVC was %v", err)
		}
		left, _ = r.failures.blocked(key, r.Clock.Now())
	}
	result.retryAfter = max(retrySoon, left)
	return err
}

// noteFailed remembers a pod that is deleted because it failed as a whole: the next one
// may fare the same.
func (r *Reconciler) noteFailed(key types.NamespacedName, s *seen, action planner.Action) {
	a, deletes := action.(planner.DeletePod)
	if !deletes {
		return
	}
	for _, pods := range [][]planner.Pod{s.Pods, s.Prepared} {
		for i := range pods {
			p := &pods[i]
			if p.UID != a.UID || !p.Finished {
				continue
			}
			if r.failures.noteFailed(key, r.Clock.Now(), p.UID, podFailed(p.Name, p.Waiting)) {
				r.warning(s, EventPodFailed, "Pod %s failed and another one takes its place: %s", p.Name, p.Waiting)
			}
		}
	}
}

// doInTime refuses to act on an observation that has grown old: this process may
// have been stopped for a while, and another one may have acted since.
func (r *Reconciler) doInTime(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action) error {
	if age := r.Clock.Since(s.Now); age >= observationLife {
		return fmt.Errorf("observed %v ago: %w", age, ErrStale)
	}
	if done, err := r.certify(ctx, key, s, action); done {
		return err
	}
	return r.do(ctx, key, s, action)
}

func (r *Reconciler) do(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action) error {
	switch a := action.(type) {
	case planner.Hold:
		return r.hold(ctx, key, s)
	case planner.MarkObject:
		return r.markObject(ctx, key, s, a)
	case planner.Dissolve:
		return r.dissolve(ctx, s)
	case planner.CreatePeerService:
		return r.createPeerService(ctx, key, s, a)
	case planner.RepairPeerService:
		return r.repairService(ctx, key, s, s.peerService, resources.PeerServiceDrift)
	case planner.EnsureClientService:
		return r.ensureClientService(ctx, key, s)
	case planner.EnsurePodDisruptionBudget:
		return r.ensureBudget(ctx, key, s, a.Voters)
	case planner.DeletePodDisruptionBudget:
		return r.deleteBudget(ctx, s)
	case planner.RecordBootstrap:
		return r.recordBootstrap(ctx, key, s, a)
	case planner.CreateSeed:
		return r.createSeed(ctx, key, s, a)
	case planner.CreatePod:
		if err := r.confirmClaim(ctx, s, a.Name); err != nil {
			return err
		}
		return r.createPod(ctx, key, s, a.Version, resources.MemberPod{Name: a.Name, Learner: a.Learner, Joined: a.Joined, InitialCluster: peers(s, a.Peers)})
	case planner.PreparePod:
		return r.preparePod(ctx, key, s, a)
	case planner.AdmitPod:
		return r.admitPod(ctx, key, s, a)
	case planner.CreateClaim:
		return r.createClaim(ctx, key, s, a)
	case planner.DeletePod:
		return r.deletePod(ctx, s, a)
	case planner.DeleteClaim:
		return r.deleteClaim(ctx, s, a)
	case planner.ReleaseClaim:
		return r.releaseClaim(ctx, key, s, a)
	case planner.RepairClaim:
		return r.repairClaim(ctx, key, s, a)
	case planner.UpgradePod:
		return r.upgradePod(ctx, key, s, a)
	case planner.RecreatePod:
		return r.recreatePod(ctx, key, s, a)
	case planner.LabelPod:
		return r.labelPod(ctx, key, s, a)
	case planner.FindMember:
		return r.confirmLost(ctx, key, s, a.Name)
	default:
		return r.recover(ctx, key, s, action)
	}
}

// changeMembership does what goes to etcd.
func (r *Reconciler) changeMembership(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action) error {
	switch a := action.(type) {
	case planner.AddMember:
		return r.addMember(ctx, s, a)
	case planner.PromoteMember:
		if err := r.confirmStays(ctx, s, a.Name); err != nil {
			return err
		}
		if err := r.Etcd.Promote(ctx, s.voters, a.ID); err != nil {
			return err
		}
		r.normal(s, EventMemberPromoted, "Member %s votes now", a.Name)
		return nil
	case planner.RemoveMember:
		return r.removeMember(ctx, key, s, a)
	case planner.MoveLeader:
		leader, found := s.endpoint(a.FromName)
		if !found {
			return fmt.Errorf("leader %s has no endpoint: %w", a.FromName, ErrStale)
		}
		if err := r.Etcd.MoveLeader(ctx, s.to(leader), a.To); err != nil {
			return err
		}
		r.normal(s, EventLeaderMoved, "Leadership moved from %s to %s", a.FromName, a.ToName)
		return nil
	case planner.RecordLog:
		return r.recordLog(ctx, key, s, a)
	case planner.PadLog:
		return r.padLog(ctx, s, a)
	case planner.Defragment:
		return r.defragment(key, s, a)
	case planner.DisarmNoSpace:
		return r.disarmNoSpace(ctx, s, a)
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

func (s *seen) endpoint(name string) (etcd.Endpoint, bool) {
	for _, e := range s.target.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return etcd.Endpoint{}, false
}

func (r *Reconciler) addMember(ctx context.Context, s *seen, a planner.AddMember) error {
	if a.Replaces {
		if err := r.confirmSpec(ctx, s); err != nil {
			return err
		}
	}
	add := r.Etcd.AddLearner
	if err := r.confirmWaits(ctx, s, a); err != nil {
		return err
	}
	if a.Voter {
		// A voter raises the quorum at once, so those who serve must be there to stay.
		if err := r.confirmOthers(ctx, s, ""); err != nil {
			return err
		}
		add = r.Etcd.AddVoter
	}
	if err := add(ctx, s.voters, resources.PeerURL(s.Cluster, a.Name)); err != nil {
		return err
	}
	r.normal(s, EventMemberAdded, "New member %s added to cluster", a.Name)
	return nil
}

// removeMember takes a member out of etcd. One that is removed because it is lost
// must be seen to be lost in the live API: the cache may be behind.
func (r *Reconciler) removeMember(ctx context.Context, key types.NamespacedName, s *seen, a planner.RemoveMember) error {
	if a.Reason == planner.RemoveLost {
		if err := r.confirmLost(ctx, key, s, a.Name); err != nil {
			return err
		}
	}
	if a.Reason != planner.RemoveLost && s.podOf(a.Name) == nil {
		// Whoever is chosen because no pod of it is seen may serve, and lead, all the same.
		if err := r.confirmNoPod(ctx, key, s, a.Name); err != nil {
			return err
		}
	}
	if err := r.confirmRemoval(ctx, s, a); err != nil {
		return err
	}
	if err := r.Etcd.Remove(ctx, s.voters, a.ID); err != nil && !errors.Is(err, etcd.ErrMemberNotFound) {
		return err
	}
	switch a.Reason {
	case planner.RemoveLost:
		r.warning(s, EventMemberLost, "Member %s lost its pod and its data and is replaced", a.Name)
	case planner.RemoveReplaced:
		if pod := s.podOf(a.Name); pod != nil && !pod.Terminating {
			r.announceReplaced(s, a.Name)
		}
	case planner.RemoveWedged:
		r.warning(s, EventMemberReplaced, "Member %s ended again and again while it joined, and another one is tried", a.Name)
	case planner.RemoveScaleDown, planner.RemoveUnwanted, planner.RemoveMisfit:
	}
	r.normal(s, EventMemberRemoved, "Existing member %s removed from the cluster", a.Name)
	return nil
}

// confirmRemoval looks once more before a member is removed that could stay.
func (r *Reconciler) confirmRemoval(ctx context.Context, s *seen, a planner.RemoveMember) error {
	if a.Reason == planner.RemoveScaleDown || a.Reason == planner.RemoveUnwanted || a.Reason == planner.RemoveReplaced {
		if err := r.confirmSpec(ctx, s); err != nil {
			return err
		}
	}
	if a.Reason == planner.RemoveWedged {
		return r.confirmDown(ctx, s, a.Name)
	}
	if a.Reason == planner.RemoveScaleDown || a.Reason == planner.RemoveReplaced {
		return r.confirmOthers(ctx, s, a.Name)
	}
	return nil
}

func peers(s *seen, names []string) []resources.Peer {
	list := make([]resources.Peer, 0, len(names))
	for _, name := range names {
		list = append(list, resources.Peer{Name: name, URL: resources.PeerURL(s.Cluster, name)})
	}
	return list
}

func (r *Reconciler) normal(s *seen, reason, format string, args ...any) {
	r.Recorder.Eventf(s.Cluster, corev1.EventTypeNormal, reason, format, args...)
}

func (r *Reconciler) warning(s *seen, reason, format string, args ...any) {
	r.Recorder.Eventf(s.Cluster, corev1.EventTypeWarning, reason, format, args...)
}
