// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// statusTimeout bounds the question to one member; members are asked together.
	statusTimeout = time.Second
	// membersTimeout bounds the linearizable read of the member list.
	membersTimeout = 2 * time.Second
)

// seen is one observation with what acting on it needs besides.
type seen struct {
	planner.Observed
	// target holds the endpoints of every member whose pod runs.
	target etcd.Target
	// voters is target without members that are known to be learners or not to serve.
	voters etcd.Target
	// reseed is the seed of a recovery under way.
	reseed        etcd.Target
	peerService   *corev1.Service
	clientService *corev1.Service
	// certificates are those that could be read, by their use.
	certificates map[v1beta2.CertificateUse]*certificates.Pair
	// signer is the authority of a cluster whose certificates are issued here.
	signer *signer
}

// observe reads the cache first and etcd afterwards; see planner.Observed for why.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, c *v1beta2.EtcdCluster) (*seen, error) {
	s := &seen{Observed: planner.Observed{
		Now:      r.Clock.Now(),
		Cluster:  c,
		NewName:  r.failures.name(key, c.Name+"-"+r.Suffix()),
		Template: resources.TemplateHash(c),
	}}
	if c.DeletionTimestamp != nil {
		return s, nil // no member is asked: what is left to do hangs on none
	}
	pods, err := r.Cache.Pods(key.Namespace, key.Name)
	if err != nil {
		return nil, fmt.Errorf("list pods from the cache: %w", err)
	}
	claims, err := r.Cache.Claims(key.Namespace, key.Name)
	if err != nil {
		return nil, fmt.Errorf("list claims from the cache: %w", err)
	}
	if err := r.observeServices(key, s); err != nil {
		return nil, err
	}
	if err := r.observeBudget(key, s); err != nil {
		return nil, err
	}
	routed, err := r.Cache.Routed(key.Namespace, resources.ClientServiceName(c))
	if err != nil {
		return nil, fmt.Errorf("read from the cache where the client service leads: %w", err)
	}
	r.sortObjects(s, pods, claims, routed)
	r.observeCertificates(ctx, key, s)
	s.Task = r.lastTask(key)
	r.observeEtcd(ctx, key, s, pods)
	if err := r.observeReseed(ctx, key, s); err != nil {
		return nil, err
	}
	r.keep(key, s.target, s.reseed)
	return s, nil
}

// misplaced is true for a pod whose container does not run and whose image is in another
// registry by now. A member that runs needs no other registry.
func (r *Reconciler) misplaced(c *v1beta2.EtcdCluster, p *corev1.Pod) bool {
	return r.Platform.Misplaced(c, p) && !observedPod(c, p).Running
}

// sortObjects tells the pods and PVCs of members from those that no member has used yet.
func (r *Reconciler) sortObjects(s *seen, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, routed map[types.UID]bool) {
	for _, p := range sorted(pods) {
		o := observedPod(s.Cluster, p)
		o.Routed, o.Outdated = routed[p.UID], o.Outdated || r.misplaced(s.Cluster, p)
		if o.Owned && resources.IsPrepared(p.Annotations) {
			s.Prepared = append(s.Prepared, o)
		} else {
			s.Pods = append(s.Pods, o)
		}
		s.observeMark(p)
	}
	for _, p := range claims {
		o := observedClaim(s.Cluster, p)
		if o.Owned && resources.IsPrepared(p.Annotations) {
			s.PreparedClaims = append(s.PreparedClaims, o)
		} else {
			s.Claims = append(s.Claims, o)
		}
		s.observeMark(p)
	}
	byName := func(a, b planner.Claim) int { return compare(a.Name, b.Name) }
	slices.SortFunc(s.Claims, byName)
	slices.SortFunc(s.PreparedClaims, byName)
}

// sorted puts ready pods first, so that they are asked first, in a stable order.
func sorted(pods []*corev1.Pod) []*corev1.Pod {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if ra, rb := ready(a), ready(b); ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return compare(a.Name, b.Name)
	})
	return pods
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (r *Reconciler) observeServices(key types.NamespacedName, s *seen) error {
	c := s.Cluster
	peer, err := r.Cache.Service(key.Namespace, c.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read service %s from the cache: %w", c.Name, err)
	}
	if err == nil {
		s.peerService = peer
		_, drifted := resources.PeerServiceDrift(c, peer)
		s.PeerService.State = state(c, peer, drifted)
		s.observeMark(peer)
		if s.PeerService.State != planner.Foreign {
			// What stands on the service of an earlier cluster is about that one.
			s.PeerService.Seed = peer.Annotations[resources.AnnotationSeed]
			s.PeerService.ClusterID = peer.Annotations[resources.AnnotationClusterID]
			s.PeerService.Recovery = recordOf(peer)
			s.PeerService.Recoveries = recoveriesOf(peer)
			s.PeerService.Log = logRecordOf(peer)
		}
	}
	client, err := r.Cache.Service(key.Namespace, resources.ClientServiceName(c))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the client service from the cache: %w", err)
	}
	if err == nil {
		s.clientService = client
		_, drifted := resources.ClientServiceDrift(c, client)
		s.ClientService = state(c, client, drifted)
		s.observeMark(client)
		if s.ClientService != planner.Foreign {
			s.ClientServiceFixed = resources.ClientServiceFixed(c, client)
		}
	}
	return nil
}

func (r *Reconciler) observeBudget(key types.NamespacedName, s *seen) error {
	pdb, err := r.Cache.PodDisruptionBudget(key.Namespace, s.Cluster.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pod disruption budget from the cache: %w", err)
	}
	drifted := resources.PodDisruptionBudgetDrifted(s.Cluster, pdb)
	s.observeMark(pdb)
	s.PodDisruptionBudget = planner.PodDisruptionBudget{State: state(s.Cluster, pdb, drifted), MinAvailable: minAvailable(pdb)}
	return nil
}

func minAvailable(pdb *policyv1.PodDisruptionBudget) int {
	if pdb.Spec.MinAvailable == nil {
		return 0
	}
	return pdb.Spec.MinAvailable.IntValue()
}

func state(c *v1beta2.EtcdCluster, object metav1.Object, drifted bool) planner.ObjectState {
	switch {
	case !resources.Owns(c, object):
		return planner.Foreign
	case drifted:
		return planner.Drifted
	default:
		return planner.Current
	}
}

func observedPod(c *v1beta2.EtcdCluster, p *corev1.Pod) planner.Pod {
	o := planner.Pod{
		Name:        p.Name,
		UID:         string(p.UID),
		Node:        p.Spec.NodeName,
		Owned:       metav1.IsControlledBy(p, c),
		Terminating: p.DeletionTimestamp != nil,
		Finished:    p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
		Role:        planner.PodRole(p.Labels[resources.LabelRole]),
		Version:     p.Annotations[resources.AnnotationVersion],
		Template:    p.Annotations[resources.AnnotationTemplate],
		Restart:     p.Annotations[resources.AnnotationRestart],
		Peers:       resources.InitialMembers(p),
		MayFill:     resources.MayFill(p),
		Made:        p.CreationTimestamp.Time,
	}
	if p.DeletionTimestamp != nil {
		// Kubernetes adds the grace period to the time of the request.
		grace := time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second
		o.DeletionRequested, o.EndsBy = p.DeletionTimestamp.Add(-grace), p.DeletionTimestamp.Time
	}
	o.Trust, o.Certificates = p.Annotations[resources.AnnotationTrust], p.Annotations[resources.AnnotationCertificates]
	o.Authorities = p.Annotations[resources.AnnotationAuthorities]
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			o.Waiting = cond.Reason + ": " + cond.Message
		}
	}
	o.Outdated = resources.RequestedImage(p) != resources.Image(c)
	for i := range p.Status.ContainerStatuses {
		cs := &p.Status.ContainerStatuses[i]
		if cs.Name != resources.ContainerName {
			continue
		}
		o.Running, o.Ends = cs.State.Running != nil, int(cs.RestartCount)
		if w := cs.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			o.Waiting = w.Reason
		}
	}
	if o.Finished && p.Status.Reason != "" {
		o.Waiting = p.Status.Reason + ": " + p.Status.Message // such as Evicted
	}
	settled := resources.Settled(p)
	o.Unstarted = !o.Running && !settled
	o.Restarting, o.Ready = o.Running && !settled, ready(p) && settled
	return o
}

func observedClaim(c *v1beta2.EtcdCluster, p *corev1.PersistentVolumeClaim) planner.Claim {
	o := planner.Claim{
		Name:        p.Name,
		UID:         string(p.UID),
		Owned:       resources.Owns(c, p),
		Terminating: p.DeletionTimestamp != nil,
		Version:     p.Annotations[resources.AnnotationVersion],
	}
	_, o.Drifted = resources.ClaimDrift(c, p)
	o.Growth, o.GrowthWhy = resources.ClaimGrowth(c, p)
	return o
}

func ready(p *corev1.Pod) bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// endpointOf returns where the member of a running pod listens for clients. The pod's
// address works before its name does.
func endpointOf(c *v1beta2.EtcdCluster, p *corev1.Pod) etcd.Endpoint {
	return etcd.Endpoint{
		Name:    p.Name,
		URL:     resources.ClientURL(c, p.Name),
		Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(resources.ClientPort)),
	}
}
