// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// requireRestartAllowed makes sure, in the live API, that the spec still is the observed
// spec, and that no other voter is about to end while a member restarts. No other voter has
// to replace a member that does not run; see requireNoListener.
func requireRestartAllowed(ctx context.Context, r *run, name string, mode planner.RestartMode) error {
	err := requireSameSpec(ctx, r)
	switch {
	case err != nil, mode == planner.RestartIdle:
		return err
	case mode == planner.RestartUnresponsive:
		return requireUnresponsive(ctx, r, name)
	default:
		return guardVoters(ctx, r, name, r.seen.countVoters())
	}
}

// requireUnresponsive makes sure that a member does not respond now, nor any other member with a leader if
// none did. And the live API must have the pods that were observed, each with the container that was
// observed: no other member has just restarted.
func requireUnresponsive(ctx context.Context, r *run, member string) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		live := observedPod(r.seen.Cluster, &pods[i])
		if !live.Owned || live.Finished || r.seen.isPrepared(&pods[i]) {
			continue
		}
		if seen := r.seen.podOf(live.Name); seen == nil || seen.UID != live.UID || live.Terminating && !seen.Terminating || live.Ready != seen.Ready || !live.Started.Equal(seen.Started) {
			return fmt.Errorf("pod %s has changed since it was observed: %w", live.Name, reconcile.ErrStale)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for name, response := range r.Etcd.Statuses(ctx, r.seen.target) {
		responds := response.Err == nil || errors.Is(response.Err, etcd.ErrDenied)
		if responds && (name == member || !r.seen.Etcd.Linearizable && response.Health.Leader != 0) {
			return fmt.Errorf("member %s responds: %w", name, reconcile.ErrStale)
		}
	}
	return nil
}

// requireNoListener makes sure that nothing listens at the address of a member whose
// container does not run: Kubernetes may report a restart seconds late. A member that
// accepts connections and does not respond yet is about to serve. This is the last check,
// so that hardly any time is left for the member to start.
func requireNoListener(ctx context.Context, r *run, live *corev1.Pod) error {
	if observedPod(r.seen.Cluster, live).Running {
		return fmt.Errorf("pod %s runs: %w", live.Name, reconcile.ErrStale)
	}
	if live.Status.PodIP == "" || !r.seen.canSendRequests() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	response, asked := r.Etcd.Statuses(ctx, r.seen.to(endpointOf(r.seen.Cluster, live)))[live.Name]
	switch {
	case asked && (response.Err == nil || errors.Is(response.Err, etcd.ErrDenied)):
		return fmt.Errorf("member %s responds: %w", live.Name, reconcile.ErrStale)
	case errors.Is(response.Err, etcd.ErrTimeout):
		return fmt.Errorf("member %s may be starting: %w", live.Name, reconcile.ErrStale)
	default:
		return nil
	}
}

// upgradePod gives the pod the image of the desired version. The container restarts
// in place, on the same data.
func upgradePod(ctx context.Context, r *run, a planner.UpgradePod) error {
	if err := requireRestartAllowed(ctx, r, a.Name, a.Mode); err != nil {
		return err
	}
	target := resources.Version(r.seen.Cluster)
	lowers := lowersVersion(r, a.Name, target)
	if !lowers {
		if err := recordVersion(ctx, r, a.Name, target); err != nil {
			return err
		}
	}
	before, done := "", false
	var rejected error
	err := updateObservedPod(ctx, r, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		before = observedPod(r.seen.Cluster, live).Version
		if rejected = requireStillDrained(r, live); rejected != nil {
			return live, false
		}
		if a.Mode == planner.RestartIdle {
			if rejected = requireNoListener(ctx, r, live); rejected != nil {
				return live, false
			}
		}
		changed, differs := r.Platform.WithVersion(r.seen.Cluster, live)
		if state := resources.ImageStateOf(live); state == resources.ImageChanged || state == resources.ImageUnnoted {
			r.seen.Record.PutBack.Mark(changed)
		}
		done = differs
		return changed, differs
	})
	if err = errors.Join(err, rejected); err != nil || !done {
		return err
	}
	if lowers {
		if err := recordVersion(ctx, r, a.Name, target); err != nil {
			return err
		}
	}
	announceRestart(r, a.Name, before, a.Version, a.Mode == planner.RestartWithOutage)
	return nil
}

// recreatePod deletes the pod of a member that has a PVC. The pod is created again when it
// no longer exists.
func recreatePod(ctx context.Context, r *run, a planner.RecreatePod) error {
	if err := requireRestartAllowed(ctx, r, a.Name, a.Mode); err != nil {
		return err
	}
	if err := requirePVC(ctx, r, a.Name); err != nil {
		return err
	}
	live, err := readOwnedPod(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	if err := requireStillDrained(r, live); err != nil {
		return err
	}
	pod := observedPod(r.seen.Cluster, live)
	if a.Mode == planner.RestartIdle && pod.Running {
		return fmt.Errorf("pod %s runs: %w", a.Name, reconcile.ErrStale) // its volume is not marked for nothing
	}
	lowers := a.Version != "" && lowersVersion(r, a.Name, a.Version)
	if seen := r.seen.podOf(a.Name); lowers && seen != nil && seen.Unstarted && !pod.Unstarted {
		return fmt.Errorf("pod %s has started since it was observed: %w", a.Name, reconcile.ErrStale)
	}
	before := dataVersion(r, &pod)
	if a.Version != "" && !lowers {
		if _, err := recordVersionAfter(ctx, r, a.Name, a.Version, before); err != nil {
			return err
		}
	}
	only := metav1.Preconditions{UID: &live.UID}
	if pod.Role == planner.PodDraining || pod.Unstarted {
		only.ResourceVersion = &live.ResourceVersion
	}
	if a.Mode == planner.RestartIdle {
		only.ResourceVersion = &live.ResourceVersion
		if err := requireNoListener(ctx, r, live); err != nil {
			return err
		}
	}
	if err := r.Objects.DeletePod(ctx, live.Namespace, live.Name, only); err != nil && !isNotFound(err) {
		return reconcile.StaleOnConflict(err)
	}
	if lowers {
		if _, err := recordVersionAfter(ctx, r, a.Name, a.Version, before); err != nil {
			return err
		}
	}
	announceRestart(r, a.Name, pod.Version, a.Version, a.Mode == planner.RestartWithOutage)
	return nil
}

// announceRestart records what happens to a member, and what that costs.
func announceRestart(r *run, name, before, version string, outage bool) {
	reason, what := EventMemberRestarted, "Member "+name+" restarts to follow the spec"
	if before != version {
		reason, what = EventMemberUpgraded, "Member "+name+" restarts with version "+version
	}
	if !outage {
		normal(r, reason, "%s", what)
		return
	}
	warning(r, reason, "%s; the cluster has no quorum until then", what)
}

// lowersVersion is true if the PVC of a member says that a newer version has run on it. An older one is
// recorded after its pod has it: the container may start with the newer one meanwhile, and then the pod
// does not change.
func lowersVersion(r *run, name, target string) bool {
	i := slices.IndexFunc(r.seen.PVCs, func(p planner.PVC) bool { return p.Name == name && p.Owned })
	if i < 0 {
		return false
	}
	has, err := version.ParseGeneric(r.seen.PVCs[i].Version)
	if err != nil {
		return false // no version is recorded
	}
	to, err := version.ParseGeneric(target)
	return err == nil && to.LessThan(has)
}

// recordVersion records on the PVC of a member which version will run on it, before that
// version does. The pod records the version too, but may be lost. Data that a version has
// used must not be given to an older version. So if another version is recorded than was
// observed, the cache is behind, and the action is not carried out.
func recordVersion(ctx context.Context, r *run, name, version string) error {
	_, err := recordVersionAfter(ctx, r, name, version, "")
	return err
}

// recordVersionAfter is recordVersion for a pod that is about to be deleted: the PVC also says which version its data
// has, until the next pod is created. It returns what the PVC has said of that if the version stays. So one pod
// learns it, and it no longer counts once that pod was there.
func recordVersionAfter(ctx context.Context, r *run, name, version, before string) (said string, err error) {
	if resources.PVC(r.seen.Cluster, name) == nil {
		return "", nil // the members of this cluster have no volumes
	}
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) || (err == nil && !resources.Owns(r.seen.Cluster, live)) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read PVC %s: %w", name, err)
	}
	if before == version {
		before = ""
	}
	said = live.Annotations[resources.AnnotationVersionBefore]
	if stays := live.Annotations[resources.AnnotationVersion] == version; stays && said == before {
		return said, nil
	} else if !stays {
		said = ""
		if i := slices.IndexFunc(r.seen.PVCs, func(p planner.PVC) bool { return p.UID == string(live.UID) }); i >= 0 &&
			r.seen.PVCs[i].Version != live.Annotations[resources.AnnotationVersion] {
			return "", fmt.Errorf("PVC %s was used by another version since it was observed: %w", name, reconcile.ErrStale)
		}
	}
	pvc := live.DeepCopy()
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, resources.AnnotationVersion, version)
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, resources.AnnotationVersionBefore, before)
	if before == "" {
		delete(pvc.Annotations, resources.AnnotationVersionBefore)
	}
	return said, updatePVC(ctx, r, pvc)
}

// dataVersion is the version that the data of a member is of, as far as its pod and its PVC prove it; empty if they do
// not. What the PVC says of a pod whose container was never created is a plan.
func dataVersion(r *run, p *planner.Pod) string {
	i := slices.IndexFunc(r.seen.PVCs, func(c planner.PVC) bool { return c.Name == p.Name && c.Owned })
	switch {
	case p.Unstarted:
		return p.RanBefore
	case i < 0 || r.seen.PVCs[i].Version != p.Version:
		return ""
	default:
		return p.Version
	}
}
