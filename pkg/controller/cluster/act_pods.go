// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// createBootstrapPod starts the cluster.
func createBootstrapPod(ctx context.Context, r *run, a planner.CreateBootstrapPod) error {
	if err := requireBootstrapMember(ctx, r, a.Name); err != nil {
		return err
	}
	return createPod(ctx, r, a.Version, resources.MemberPod{
		Name:           a.Name,
		Bootstrap:      true,
		Token:          string(r.seen.Cluster.UID),
		InitialCluster: peers(r.seen, []string{a.Name}),
	})
}

// createMemberPod creates the pod of a member whose PVC exists.
func createMemberPod(ctx context.Context, r *run, a planner.CreatePod) error {
	if err := requirePVC(ctx, r, a.Name); err != nil {
		return err
	}
	if err := requireNotRead(ctx, r, a.Name); err != nil {
		return err
	}
	if a.Joining {
		if err := requireJoining(ctx, r, a.Name); err != nil {
			return err
		}
	}
	return createPod(ctx, r, a.Version, resources.MemberPod{
		Name: a.Name, Learner: a.Learner, Joined: a.Joined, InitialCluster: peers(r.seen, a.Peers),
	})
}

// createPod makes a member's pod. That it exists already is success if it is ours:
// the reply to an earlier attempt was lost.
func createPod(ctx context.Context, r *run, version string, m resources.MemberPod) error {
	c := atVersion(r.seen.Cluster, version)
	if resources.PVC(c, m.Name) != nil {
		// A cache that is behind must not note another version on a volume than runs on it.
		live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, m.Name)
		if err == nil {
			return restorePodLabels(ctx, r, live)
		}
		if !isNotFound(err) {
			return fmt.Errorf("read pod %s: %w", m.Name, err)
		}
	}
	before, err := recordVersionAfter(ctx, r, m.Name, resources.Version(c), "")
	if err != nil {
		return err
	}
	pod := resources.Pod(c, r.seen.certified(m))
	if before != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, resources.AnnotationVersionBefore, before)
	}
	err = submitPod(ctx, r, r.Platform.Member(c, pod))
	if apierrors.IsAlreadyExists(err) {
		live, getErr := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, m.Name)
		if getErr != nil {
			return fmt.Errorf("read pod %s: %w", m.Name, getErr)
		}
		return restorePodLabels(ctx, r, live)
	}
	return reconcile.MarkRejected(err)
}

// atVersion returns c as it would be if it declared another version.
func atVersion(c *v1beta2.EtcdCluster, version string) *v1beta2.EtcdCluster {
	if version == "" {
		return c
	}
	c = c.DeepCopy()
	if resources.NormalizeVersion(version) != resources.Version(c) {
		c.Spec.ImageDigest = "" // it is that of the declared version
	}
	c.Spec.Version = version
	return c
}

// deletePod deletes exactly the pod that was observed, and only if it is ours now.
func deletePod(ctx context.Context, r *run, a planner.DeletePod) error {
	live, err := readOwnedPod(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	only := metav1.Preconditions{UID: &live.UID}
	switch a.Why {
	case planner.DeleteObsolete:
	case planner.DeleteBootstrapPod, planner.DeleteWithoutPVC, planner.DeletePrepared:
		// The pod must not have changed between this read and the deletion.
		only.ResourceVersion = &live.ResourceVersion
		err = confirmUnused(ctx, r, live, a.Why)
	case planner.DeleteUnpublished:
		// The pod changes when it is published.
		only.ResourceVersion = &live.ResourceVersion
		_, err = readSeenRecord(ctx, r)
	case planner.DeleteDrained, planner.DeleteReplaced:
		if err = errors.Join(requireStillDrained(r, live), requireSameSpec(ctx, r)); err == nil {
			err = guardVoters(ctx, r, a.Name, r.seen.countVoters())
		}
	case planner.DeleteHibernated, planner.DeleteDistrusting:
		if err = requireSameSpec(ctx, r); err == nil {
			err = requirePVC(ctx, r, a.Name)
		}
	}
	if err != nil {
		return err
	}
	err = r.Objects.DeletePod(ctx, live.Namespace, live.Name, only)
	if isNotFound(err) {
		return nil
	}
	switch {
	case err != nil:
	case a.Why == planner.DeleteReplaced:
		announceReplaced(r, a.Name)
	case a.Why == planner.DeleteDistrusting:
		warning(r, EventMemberRestarted, "Member %s restarts together with the others, because they reject each other's certificates; the cluster has no quorum until most of them serve", a.Name)
	}
	return reconcile.StaleOnConflict(err)
}

// confirmUnused makes sure that no client can have a response from the pod, and no member
// its data in it.
func confirmUnused(ctx context.Context, r *run, live *corev1.Pod, why planner.PodDeletion) error {
	switch pod := observedPod(r.seen.Cluster, live); why {
	case planner.DeleteBootstrapPod:
		if pod.Running && !pod.Finished {
			return fmt.Errorf("bootstrap pod %s runs: %w", live.Name, reconcile.ErrStale)
		}
		return requireBootstrapMember(ctx, r, live.Name)
	case planner.DeleteWithoutPVC:
		if pod.Running {
			return fmt.Errorf("pod %s runs: %w", live.Name, reconcile.ErrStale)
		}
		if _, err := r.Objects.GetPVC(ctx, live.Namespace, live.Name); !isNotFound(err) {
			return errors.Join(err, fmt.Errorf("PVC %s exists: %w", live.Name, reconcile.ErrStale))
		}
		return nil
	case planner.DeletePrepared:
		if !r.seen.isPrepared(live) {
			return fmt.Errorf("pod %s was admitted, or its member has started: %w", live.Name, reconcile.ErrStale)
		}
		return nil
	default:
		return fmt.Errorf("deletion %q of pod %s has no check", why, live.Name)
	}
}

// announceReplaced says why a member goes. When it is removed from etcd its pod no longer
// exists, perhaps, and nothing tells it from a member of a cluster that shrinks.
func announceReplaced(r *run, name string) {
	if op := r.seen.Cluster.Status.Operation; !op.IsOver() && op.Type == v1beta2.OperationReplace && slices.Contains(op.Members, name) {
		normal(r, EventMemberReplaced, "Another member replaces %s, as %s requested", name, cmp.Or(op.RequestedBy, "a user"))
		return
	}
	if pod := r.seen.podOf(name); pod != nil && pod.Cordoned {
		normal(r, EventMemberReplaced, "Another member replaces %s, whose node %s is cordoned: the disruption budget allows no eviction", name, pod.Node)
		return
	}
	if pod := r.seen.podOf(name); pod != nil && pod.Fills {
		normal(r, EventMemberReplaced, "Another member replaces %s, whose pod still has the volumes and credentials that its data was restored with", name)
		return
	}
	normal(r, EventMemberReplaced, "Member %s has no PVC to restart on; another member replaces it, to follow the spec", name)
}

// readOwnedPod reads a pod and returns it if it is the one observed and ours; nil if it is
// gone or goes.
func readOwnedPod(ctx context.Context, r *run, name, uid string) (*corev1.Pod, error) {
	live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	if string(live.UID) != uid || !resources.Owns(r.seen.Cluster, live) {
		return nil, fmt.Errorf("pod %s was replaced since it was observed: %w", name, reconcile.ErrStale)
	}
	if live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}

// labelPod says on the pod what its member is, what it was made from, and which image was admitted.
func labelPod(ctx context.Context, r *run, a planner.LabelPod) error {
	return updateObservedPod(ctx, r, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		noted, unnoted := resources.WithNote(live, r.seen.Now)
		adopted, unknown := resources.Adopted(r.seen.Cluster, noted)
		pod, other := resources.WithRole(adopted, string(a.Role))
		if a.Admit {
			admitted, waits := resources.AdmittedJoined(r.seen.Cluster, pod)
			pod, other = admitted, other || waits
		}
		if a.Joined {
			done, might := resources.Joined(r.seen.Cluster, pod)
			return done, unnoted || unknown || other || might
		}
		return pod, unnoted || unknown || other
	})
}

// findMember looks in the live API for the pod and the PVC of a member that seems to be lost.
// A pod or PVC that only lost its labels gets them back.
func findMember(ctx context.Context, r *run, a planner.FindMember) error {
	if err := requireNoPodOrPVC(ctx, r, a.Name); !errors.Is(err, errDecommissioned) {
		return err
	}
	return nil // another look finds the same
}

// updateObservedPod updates exactly the pod that was observed, if there is something to
// change.
func updateObservedPod(ctx context.Context, r *run, name, uid string, change func(*corev1.Pod) (*corev1.Pod, bool)) error {
	live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if string(live.UID) != uid || !resources.Owns(r.seen.Cluster, live) || live.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s was replaced since it was observed: %w", name, reconcile.ErrStale)
	}
	changed, differs := change(live)
	if !differs {
		return nil
	}
	return updatePod(ctx, r, live, changed)
}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }
