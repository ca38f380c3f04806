// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// confirmRestart makes sure, in the live API, that the cluster still is declared as it
// was observed, and that nobody else is about to go while a member restarts. Nobody need
// take the place of a member that does not run; see confirmSilent.
func (r *Reconciler) confirmRestart(ctx context.Context, s *seen, name string, waiting bool) error {
	if err := r.confirmSpec(ctx, s); err != nil || waiting {
		return err
	}
	return r.confirmOthers(ctx, s, name)
}

// confirmSilent makes sure that nothing listens where a member would whose container
// does not run: Kubernetes may say seconds late that it was started again. A member that
// takes connections and does not answer is about to serve. It is asked last of all, so
// that hardly any time is left for it to start.
func (r *Reconciler) confirmSilent(ctx context.Context, s *seen, live *corev1.Pod) error {
	if observedPod(s.Cluster, live).Running {
		return fmt.Errorf("pod %s runs: %w", live.Name, ErrStale)
	}
	if live.Status.PodIP == "" || !s.secure() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answer, asked := r.Etcd.Statuses(ctx, s.to(endpointOf(s.Cluster, live)))[live.Name]
	switch {
	case asked && (answer.Err == nil || errors.Is(answer.Err, etcd.ErrDenied)):
		return fmt.Errorf("member %s answers: %w", live.Name, ErrStale)
	case errors.Is(answer.Err, etcd.ErrTimeout):
		return fmt.Errorf("member %s may be starting: %w", live.Name, ErrStale)
	default:
		return nil
	}
}

// upgradePod gives the pod the image of the wanted version. The container restarts
// in place, on the same data.
func (r *Reconciler) upgradePod(ctx context.Context, key types.NamespacedName, s *seen, a planner.UpgradePod) error {
	if err := r.confirmRestart(ctx, s, a.Name, a.Waiting); err != nil {
		return err
	}
	if err := r.markClaim(ctx, key, s, a.Name, resources.Version(s.Cluster)); err != nil {
		return err
	}
	before, done := "", false
	var runs error
	err := r.changePod(ctx, key, s, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		before = observedPod(s.Cluster, live).Version
		if a.Waiting {
			if runs = r.confirmSilent(ctx, s, live); runs != nil {
				return live, false
			}
		}
		changed, differs := r.Platform.WithVersion(s.Cluster, live)
		done = differs
		return changed, differs
	})
	if err = errors.Join(err, runs); err != nil || !done {
		return err
	}
	r.announceRestart(s, a.Name, before, a.Version, a.Outage)
	return nil
}

// recreatePod deletes the pod of a member that has a volume; it is made again when it
// is gone.
func (r *Reconciler) recreatePod(ctx context.Context, key types.NamespacedName, s *seen, a planner.RecreatePod) error {
	if err := r.confirmRestart(ctx, s, a.Name, a.Waiting); err != nil {
		return err
	}
	if err := r.confirmClaim(ctx, s, a.Name); err != nil {
		return err
	}
	live, err := r.ownPod(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	pod := observedPod(s.Cluster, live)
	if a.Waiting && pod.Running {
		return fmt.Errorf("pod %s runs: %w", a.Name, ErrStale) // its volume is not marked for nothing
	}
	if a.Version != "" {
		if err := r.markClaim(ctx, key, s, a.Name, a.Version); err != nil {
			return err
		}
	}
	only := metav1.Preconditions{UID: &live.UID}
	if a.Waiting {
		only.ResourceVersion = &live.ResourceVersion
		if err := r.confirmSilent(ctx, s, live); err != nil {
			return err
		}
	}
	if err := r.Objects.DeletePod(ctx, live.Namespace, live.Name, only); err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	r.announceRestart(s, a.Name, pod.Version, a.Version, a.Outage)
	return nil
}

// announceRestart records what happens to a member, and what that costs.
func (r *Reconciler) announceRestart(s *seen, name, before, version string, outage bool) {
	reason, what := EventMemberRestarted, "Member "+name+" restarts as it is declared"
	if before != version {
		reason, what = EventMemberUpgraded, "Member "+name+" restarts with version "+version
	}
	if !outage {
		r.normal(s, reason, "%s", what)
		return
	}
	r.warning(s, reason, "%s; the cluster is too small to serve meanwhile", what)
}

// markClaim notes on the volume of a member which version will run on it, before one
// does: the pod that says so too may be lost, and what is on a volume that a version
// has seen must not be given to an older one.
func (r *Reconciler) markClaim(ctx context.Context, key types.NamespacedName, s *seen, name, version string) error {
	if resources.Claim(s.Cluster, name) == nil {
		return nil // the members of this cluster have no volumes
	}
	live, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) || (err == nil && !resources.Owns(s.Cluster, live)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if live.Annotations[resources.AnnotationVersion] == version {
		return nil
	}
	claim := live.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, resources.AnnotationVersion, version)
	return r.writeClaim(ctx, key, claim)
}
