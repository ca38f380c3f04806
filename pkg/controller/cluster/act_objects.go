// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ErrEnding means that the namespace is going away, and everything with it.
var ErrEnding = errors.New("the namespace is being deleted")

// ending recognises the refusal to make something in a namespace that is going away.
func ending(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("%w: %w", ErrEnding, err)
	}
	return err
}

// ErrRefused means that Kubernetes does not let an object be made: a quota is used up, or
// a policy forbids it. It is tried again until somebody has changed that.
var ErrRefused = errors.New("rejected by Kubernetes")

// notMade tells why a pod, or its volume, could not be made.
func notMade(err error) error {
	if err = ending(err); refuses(err) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// refuses is true of an answer that stays the same until somebody changes something.
func refuses(err error) bool {
	return !errors.Is(err, ErrEnding) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

func notFound(err error) bool { return apierrors.IsNotFound(err) }

// createPeerService claims the seed's name: of two controllers only one can make
// the service, and the other one reads from it which seed that is.
func (r *Reconciler) createPeerService(ctx context.Context, key types.NamespacedName, s *seen, a planner.CreatePeerService) error {
	service := resources.PeerService(s.Cluster, a.Seed)
	if a.ClusterID != "" {
		service.Annotations[resources.AnnotationClusterID] = a.ClusterID
	} else if err := r.confirmUnborn(ctx, s, a.Seed); err != nil {
		return err
	}
	created, err := r.Objects.CreateService(ctx, service)
	if apierrors.IsAlreadyExists(err) {
		if err := r.showService(ctx, key, s, service.Name, resources.PeerServiceDrift); err != nil {
			return err
		}
		return fmt.Errorf("service %s was made meanwhile: %w", service.Name, ErrStale)
	}
	if err != nil {
		return ending(err)
	}
	r.Gate.Note(key, created)
	return nil
}

// createSeed starts the cluster.
func (r *Reconciler) createSeed(ctx context.Context, key types.NamespacedName, s *seen, a planner.CreateSeed) error {
	if err := r.confirmSeed(ctx, s, a.Name); err != nil {
		return err
	}
	return r.createPod(ctx, key, s, a.Version, resources.MemberPod{
		Name:           a.Name,
		Seed:           true,
		Token:          string(s.Cluster.UID),
		InitialCluster: peers(s, []string{a.Name}),
	})
}

// recordBootstrap writes the cluster ID into the record.
func (r *Reconciler) recordBootstrap(ctx context.Context, key types.NamespacedName, s *seen, a planner.RecordBootstrap) error {
	record, err := r.Objects.GetService(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("read the record of the bootstrap: %w", err)
	}
	if !resources.Owns(s.Cluster, record) {
		return fmt.Errorf("service %s belongs to somebody else: %w", record.Name, ErrStale)
	}
	record = record.DeepCopy()
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, resources.AnnotationClusterID, strconv.FormatUint(a.ClusterID, 16))
	if a.Log.ClusterID != "" {
		setLogRecord(record, a.Log)
	}
	updated, err := r.Objects.UpdateService(ctx, record)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	r.normal(s, EventClusterStarted, "Cluster started with member %s", s.PeerService.Seed)
	return nil
}

// conflictIsStale turns the conflict of an update into what it is: an observation
// that somebody else's write has overtaken.
func conflictIsStale(err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

type drift func(*v1beta2.EtcdCluster, *corev1.Service) (*corev1.Service, bool)

func (r *Reconciler) repairService(ctx context.Context, key types.NamespacedName, s *seen, live *corev1.Service, repaired drift) error {
	if live == nil {
		return fmt.Errorf("no service to repair: %w", ErrStale)
	}
	service, drifted := repaired(s.Cluster, live)
	if !drifted {
		return nil
	}
	if len(live.OwnerReferences) != len(service.OwnerReferences) {
		// Without owner it stays until the cluster is deleted, so there must be one.
		if err := r.confirmSpec(ctx, s); err != nil {
			return err
		}
	}
	updated, err := r.Objects.UpdateService(ctx, service)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	if before := live.DeepCopy(); mark(s, before) && equality.Semantic.DeepEqual(before, service) {
		return nil // only the marks have changed, as an update of the controller changes them
	}
	r.normal(s, EventServiceRepaired, "Service %s was changed by somebody and is repaired", service.Name)
	return nil
}

// errServiceRefused means that Kubernetes does not let the service for clients be what
// its template says, such as one of a family that the Kubernetes cluster does not have.
var errServiceRefused = errors.New("the service for clients is refused by Kubernetes")

func (r *Reconciler) ensureClientService(ctx context.Context, key types.NamespacedName, s *seen) error {
	err := r.putClientService(ctx, key, s)
	if err = ending(err); refuses(err) {
		return fmt.Errorf("%w: %w", errServiceRefused, err)
	}
	return err
}

func (r *Reconciler) putClientService(ctx context.Context, key types.NamespacedName, s *seen) error {
	if s.clientService != nil {
		return r.repairService(ctx, key, s, s.clientService, resources.ClientServiceDrift)
	}
	service := resources.ClientService(s.Cluster)
	created, err := r.Objects.CreateService(ctx, service)
	if apierrors.IsAlreadyExists(err) {
		return r.showService(ctx, key, s, service.Name, resources.ClientServiceDrift)
	}
	if err != nil {
		return err
	}
	r.Gate.Note(key, created)
	return nil
}

// createPod makes a member's pod. That it exists already is success if it is ours:
// the reply to an earlier attempt was lost.
func (r *Reconciler) createPod(ctx context.Context, key types.NamespacedName, s *seen, version string, m resources.MemberPod) error {
	c := atVersion(s.Cluster, version)
	if resources.Claim(c, m.Name) != nil {
		// A cache that is behind must not note another version on a volume than runs on it.
		live, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, m.Name)
		if err == nil {
			return r.showPod(ctx, key, s, live)
		}
		if !notFound(err) {
			return fmt.Errorf("read pod %s: %w", m.Name, err)
		}
	}
	if err := r.markClaim(ctx, key, s, m.Name, resources.Version(c)); err != nil {
		return err
	}
	m = s.certified(m)
	created, err := r.Objects.CreatePod(ctx, r.Platform.Member(c, resources.Pod(c, m)))
	if apierrors.IsAlreadyExists(err) {
		live, getErr := r.Objects.GetPod(ctx, s.Cluster.Namespace, m.Name)
		if getErr != nil {
			return fmt.Errorf("read pod %s: %w", m.Name, getErr)
		}
		return r.showPod(ctx, key, s, live)
	}
	if err != nil {
		return notMade(err)
	}
	r.Gate.Note(key, created)
	return nil
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
func (r *Reconciler) deletePod(ctx context.Context, s *seen, a planner.DeletePod) error {
	live, err := r.ownPod(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	only := metav1.Preconditions{UID: &live.UID}
	if a.Seed {
		// Nobody can have an answer from it between the two reads and the deletion, or
		// the resource version would have changed.
		only.ResourceVersion = &live.ResourceVersion
		if pod := observedPod(s.Cluster, live); pod.Running && !pod.Finished {
			return fmt.Errorf("seed %s runs: %w", a.Name, ErrStale)
		}
		if err := r.confirmSeed(ctx, s, a.Name); err != nil {
			return err
		}
	}
	if a.Stranded {
		only.ResourceVersion = &live.ResourceVersion
		if observedPod(s.Cluster, live).Running {
			return fmt.Errorf("pod %s runs: %w", a.Name, ErrStale)
		}
		if _, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, a.Name); !notFound(err) {
			return errors.Join(err, fmt.Errorf("claim %s exists: %w", a.Name, ErrStale))
		}
	}
	if a.Prepared && !resources.IsPrepared(live.Annotations) {
		return fmt.Errorf("pod %s was admitted: %w", a.Name, ErrStale)
	}
	if a.Prepared {
		only.ResourceVersion = &live.ResourceVersion
	}
	if a.Leaves {
		if err := r.confirmSpec(ctx, s); err != nil {
			return err
		}
		if err := r.confirmOthers(ctx, s, a.Name); err != nil {
			return err
		}
	}
	if a.Hibernate {
		if err := r.confirmSpec(ctx, s); err != nil {
			return err
		}
		if err := r.confirmClaim(ctx, s, a.Name); err != nil {
			return err
		}
	}
	err = r.Objects.DeletePod(ctx, live.Namespace, live.Name, only)
	if notFound(err) {
		return nil
	}
	if err == nil && a.Replaced {
		r.announceReplaced(s, a.Name)
	}
	return conflictIsStale(err)
}

// announceReplaced says why a member goes. When it is removed from etcd its pod no longer
// exists, perhaps, and nothing tells it from a member of a cluster that shrinks.
func (r *Reconciler) announceReplaced(s *seen, name string) {
	r.normal(s, EventMemberReplaced, "Member %s has no volume to restart on and is replaced by another one, as it is declared", name)
}

// ownPod reads a pod and returns it if it is the one observed and ours; nil if it is
// gone or goes.
func (r *Reconciler) ownPod(ctx context.Context, s *seen, name, uid string) (*corev1.Pod, error) {
	live, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	if string(live.UID) != uid || !metav1.IsControlledBy(live, s.Cluster) {
		return nil, fmt.Errorf("pod %s is another one now: %w", name, ErrStale)
	}
	if live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}

func (r *Reconciler) deleteClaim(ctx context.Context, s *seen, a planner.DeleteClaim) error {
	live, err := r.ownClaim(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	if a.Prepared && !resources.IsPrepared(live.Annotations) {
		return fmt.Errorf("PVC %s was admitted: %w", a.Name, ErrStale)
	}
	err = r.Objects.DeleteClaim(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	if notFound(err) {
		return nil
	}
	return conflictIsStale(err)
}

func (r *Reconciler) releaseClaim(ctx context.Context, key types.NamespacedName, s *seen, a planner.ReleaseClaim) error {
	live, err := r.ownClaim(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	return r.writeClaim(ctx, key, resources.Released(s.Cluster, live))
}

func (r *Reconciler) writeClaim(ctx context.Context, key types.NamespacedName, claim *corev1.PersistentVolumeClaim) error {
	updated, err := r.Objects.UpdateClaim(ctx, claim)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	return nil
}

func (r *Reconciler) writePod(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) error {
	updated, err := r.Objects.UpdatePod(ctx, pod)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	return nil
}

// ownClaim reads a claim and returns it if it is the one observed and ours; nil if
// it is gone.
func (r *Reconciler) ownClaim(ctx context.Context, s *seen, name, uid string) (*corev1.PersistentVolumeClaim, error) {
	live, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read claim %s: %w", name, err)
	}
	if string(live.UID) != uid || !resources.Owns(s.Cluster, live) {
		return nil, fmt.Errorf("claim %s is another one now: %w", name, ErrStale)
	}
	if live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}

// labelPod says on the pod what its member is, and what it was made from.
func (r *Reconciler) labelPod(ctx context.Context, key types.NamespacedName, s *seen, a planner.LabelPod) error {
	return r.changePod(ctx, key, s, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		adopted, unknown := resources.Adopted(s.Cluster, live)
		pod, other := resources.WithRole(adopted, string(a.Role))
		if a.Joined {
			done, might := resources.Joined(s.Cluster, pod)
			return done, unknown || other || might
		}
		return pod, unknown || other
	})
}

// changePod updates exactly the pod that was observed, if there is something to
// change.
func (r *Reconciler) changePod(ctx context.Context, key types.NamespacedName, s *seen, name, uid string, change func(*corev1.Pod) (*corev1.Pod, bool)) error {
	live, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if string(live.UID) != uid || !metav1.IsControlledBy(live, s.Cluster) || live.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is another one now: %w", name, ErrStale)
	}
	changed, differs := change(live)
	if !differs {
		return nil
	}
	return r.writePod(ctx, key, changed)
}
