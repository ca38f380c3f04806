// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
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
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

const (
	// statusTimeout bounds the request to one member; the requests to all members run
	// together.
	statusTimeout = time.Second
	// healthyTimeout bounds the same requests while the last status calls every member healthy. A busy
	// machine delays a response, and nothing is wrong with the member. A member that is known not to
	// respond is not waited for so long: it would hold a worker.
	healthyTimeout = 2 * time.Second
	// membersTimeout bounds the linearizable read of the member list.
	membersTimeout = 2 * time.Second
	// commitTimeout bounds the proof that the other voters commit before a member goes.
	commitTimeout = 3 * time.Second
)

// seen is one observation, with what actions need in addition.
type seen struct {
	planner.Observed
	// clusterIDs are the IDs that etcd has said or may say; see Target of package etcd.
	clusterIDs []uint64
	// target holds the endpoints of every member whose pod runs.
	target etcd.Target
	// voters is target without members that are known to be learners or not to serve.
	voters etcd.Target
	// recoveryMember is the target of a recovery under way.
	recoveryMember etcd.Target
	// recoveryPod is the pod of its recovery member; nil if there is none.
	recoveryPod *corev1.Pod
	// existing holds the endpoints of the etcd that the cluster takes over. After the member list
	// was read it has one for each old member that responded, under the name of that member.
	existing etcd.Target
	// lastResort are the old members that serve while a member of the cluster votes, unless that returned the member list;
	// see readThroughOldMembers.
	lastResort []etcd.Endpoint
	// listed is the member list of etcd, if it was read through a quorum.
	listed        []etcd.Member
	record        *corev1.ConfigMap
	peerService   *corev1.Service
	clientService *corev1.Service
	// certificates are those that could be read, by their use.
	certificates map[v1beta2.CertificateUse]*certificates.Pair
	// signer is the CA of a cluster whose certificates are issued here.
	signer *signer
	// needed are the CAs that must stay trusted and that its Secret does not list.
	needed []*x509.Certificate
	// identity is what the controller shows to members: its own certificate, or another
	// certificate that members accept; nil if there is none.
	identity *certificates.Pair
}

// observe reads the cache first and etcd afterwards; see planner.Observed for why.
func observe(ctx context.Context, r *run, c *v1beta2.EtcdCluster) error {
	r.seen = &seen{Observed: planner.Observed{
		Now:           r.Clock.Now(),
		Cluster:       c,
		NewName:       r.creation.PodName(r.key, c.Name+"-"+r.Suffix()),
		BootstrapName: resources.BootstrapMember(c),
		Template:      resources.TemplateHash(c),
	}}
	if c.DeletionTimestamp != nil {
		return nil // no request to a member: the remaining steps need none
	}
	pods, err := r.Cache.Pods(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list pods from the cache: %w", err)
	}
	pvcs, err := r.Cache.PVCs(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list PVCs from the cache: %w", err)
	}
	if err := observeRecord(r, pods, pvcs); err != nil {
		return err
	}
	if err := observeServices(r); err != nil {
		return err
	}
	if err := observeBudget(r); err != nil {
		return err
	}
	if err := observeRecoveryBudget(r); err != nil {
		return err
	}
	inEndpoints, err := r.Cache.PodsInEndpoints(r.key.Namespace, resources.ClientServiceName(c))
	if err != nil {
		return fmt.Errorf("read from the cache where the client service leads: %w", err)
	}
	sortObjects(r, pods, pvcs, inEndpoints)
	r.seen.NewName = unusedName(r, pods, pvcs)
	if err := observeRecoveryPod(r); err != nil {
		return err
	}
	observeCertificates(ctx, r)
	observeClients(ctx, r)
	r.seen.sortFound()
	r.seen.Task = lastTask(r)
	r.seen.Etcd.Disarms = r.disarms.of(r.key, r.seen.Now)
	observeEtcd(ctx, r, pods)
	observeAway(ctx, r, pods)
	if err := observeRecoveryMember(ctx, r); err != nil {
		return err
	}
	observeNodesOfUnresponsive(ctx, r)
	if err := observeRecoveryRestore(r); err != nil {
		return err
	}
	if err := observeLossRestore(r); err != nil {
		return err
	}
	if err := observeAwaitedRestore(r); err != nil {
		return err
	}
	r.keep(r.key, r.seen.target, r.seen.recoveryMember, r.seen.existing)
	return observeSources(ctx, r)
}

// unusedName returns the name for the next member. The name of a pod that was rejected serves
// again, unless its PVC was created. That PVC waits for the pod of its member, and no recovery
// member may take it.
func unusedName(r *run, pods []*corev1.Pod, pvcs []*corev1.PersistentVolumeClaim) string {
	name := r.seen.NewName
	if slices.Contains(r.seen.Record.Removed, name) || slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name }) ||
		slices.ContainsFunc(pvcs, func(p *corev1.PersistentVolumeClaim) bool { return p.Name == name }) {
		return r.seen.Cluster.Name + "-" + r.Suffix()
	}
	return name
}

// isMisplaced is true for a pod whose container does not run and whose image is in another
// registry by now. A member that runs needs no other registry.
func isMisplaced(r *run, c *v1beta2.EtcdCluster, p *corev1.Pod) bool {
	return r.Platform.IsMisplaced(c, p) && !observedPod(c, p).Running
}

// sortObjects tells the pods and PVCs of members from those that no member has used yet. The member list may name
// more members later; see observePrepared.
func sortObjects(r *run, pods []*corev1.Pod, pvcs []*corev1.PersistentVolumeClaim, inEndpoints map[types.UID]bool) {
	for _, p := range sorted(pods) {
		o := observedPod(r.seen.Cluster, p)
		o.Cordoned = r.Cache.IsCordoned(o.Node) && !toleratesCordon(p)
		o.InEndpoints, o.Outdated = inEndpoints[p.UID], o.Outdated || isMisplaced(r, r.seen.Cluster, p)
		o.OtherInitImage = r.Platform.HasOtherInitImage(p, r.AgentImage)
		if o.Owned && resources.IsPrepared(p.Annotations) {
			r.seen.Prepared = append(r.seen.Prepared, o)
		} else {
			r.seen.Pods = append(r.seen.Pods, o)
		}
		r.seen.observeMark(p)
	}
	for _, p := range pvcs {
		o := observedPVC(r.seen.Cluster, p)
		o.Drifted = o.Drifted || !resources.KnowsRecoveries(p, r.seen.Record.Recoveries)
		if o.Owned && resources.IsPrepared(p.Annotations) {
			r.seen.PreparedPVCs = append(r.seen.PreparedPVCs, o)
		} else {
			r.seen.PVCs = append(r.seen.PVCs, o)
		}
		r.seen.observeMark(p)
	}
	byName := func(a, b planner.PVC) int { return compare(a.Name, b.Name) }
	slices.SortFunc(r.seen.PVCs, byName)
	slices.SortFunc(r.seen.PreparedPVCs, byName)
	planner.TakeUpStarted(&r.seen.Observed)
}

// sorted puts ready pods first, so that requests go to them first, in a stable order.
func sorted(pods []*corev1.Pod) []*corev1.Pod {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if ra, rb := isReady(a), isReady(b); ra != rb {
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

func observeServices(r *run) error {
	c := r.seen.Cluster
	peer, err := r.Cache.Service(r.key.Namespace, c.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read service %s from the cache: %w", c.Name, err)
	}
	if err == nil {
		r.seen.peerService = peer
		_, drifted := r.seen.peerServiceDrift(c, peer)
		r.seen.PeerService = state(c, peer, drifted)
		r.seen.observeMark(peer)
	}
	client, err := r.Cache.Service(r.key.Namespace, resources.ClientServiceName(c))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the client service from the cache: %w", err)
	}
	if err == nil {
		r.seen.clientService = client
		_, drifted := resources.ClientServiceDrift(c, client)
		r.seen.ClientService = state(c, client, drifted)
		r.seen.observeMark(client)
		if r.seen.ClientService != planner.NotOwned {
			r.seen.ClientServiceFixed = resources.ClientServiceFixed(c, client)
		}
	}
	return nil
}

func observeBudget(r *run) error {
	pdb, err := r.Cache.PodDisruptionBudget(r.key.Namespace, r.seen.Cluster.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pod disruption budget from the cache: %w", err)
	}
	drifted := resources.HasPodDisruptionBudgetDrifted(r.seen.Cluster, pdb)
	r.seen.observeMark(pdb)
	r.seen.PodDisruptionBudget = planner.PodDisruptionBudget{State: state(r.seen.Cluster, pdb, drifted), MinAvailable: minAvailable(pdb)}
	return nil
}

// observeRecoveryBudget looks for the budget of a recovery member.
func observeRecoveryBudget(r *run) error {
	name := resources.RecoveryBudgetName(r.seen.Cluster.Name)
	pdb, err := r.Cache.PodDisruptionBudget(r.key.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PodDisruptionBudget %s from the cache: %w", name, err)
	}
	_, drifted := resources.BudgetDrift(r.seen.Cluster, pdb, resources.RecoveryBudget(r.seen.Cluster))
	r.seen.RecoveryBudget = state(r.seen.Cluster, pdb, drifted)
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
		return planner.NotOwned
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
		Owned:       resources.Owns(c, p),
		Terminating: p.DeletionTimestamp != nil,
		Finished:    p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
		Role:        planner.PodRole(p.Labels[resources.LabelRole]),
		Version:     p.Annotations[resources.AnnotationVersion],
		Template:    p.Annotations[resources.AnnotationTemplate],
		Restart:     p.Annotations[resources.AnnotationRestart],
		Peers:       resources.InitialMembers(p),
		MayFill:     resources.MayFill(p),
		Fills:       resources.Fills(p),
		Made:        p.CreationTimestamp.Time,
		Quota:       resources.QuotaOf(p),
		Log:         resources.LogOptionsOfPod(p),
	}
	if p.DeletionTimestamp != nil {
		// Kubernetes adds the grace period to the time of the request.
		grace := time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second
		o.DeletionRequested, o.EndsBy = p.DeletionTimestamp.Add(-grace), p.DeletionTimestamp.Time
	}
	o.Trust, o.Certificates = p.Annotations[resources.AnnotationTrust], p.Annotations[resources.AnnotationCertificates]
	o.PeerCAs = p.Annotations[resources.AnnotationCAs]
	if reason, message, is := resources.Unscheduled(p); is {
		o.Waiting = untrusted.Text(reason + ": " + message)
	}
	o.Outdated = resources.RequestedImage(p) != resources.Image(c)
	o.Image, o.ImageName = resources.ImageStateOf(p), resources.EtcdImage(p)
	o.PutBack, o.FromPolicy = p.Annotations[resources.AnnotationPutBack], resources.IsImageFromPolicy(p)
	o.NeedsNewPod = o.Owned && (o.Outdated || o.Version != resources.Version(c)) && resources.NeedsNewPod(c, p)
	if cs := etcdStatus(p); cs != nil {
		o.Running, o.RestartCount = cs.State.Running != nil, int(cs.RestartCount)
		if o.Running {
			o.Started = cs.State.Running.StartedAt.Time
		}
	}
	if text := containerWaiting(p); text != "" {
		o.Waiting = untrusted.Text(text)
	}
	if o.Finished && p.Status.Reason != "" {
		o.Waiting = untrusted.Text(p.Status.Reason + ": " + p.Status.Message) // such as Evicted
	}
	settled := resources.IsSettled(p)
	first := resources.IsFirstOfVersion(p)
	o.Unstarted = !o.Running && (!settled || first)
	if first {
		o.RanBefore = p.Annotations[resources.AnnotationVersionBefore]
	}
	o.Restarting, o.Ready = o.Running && !settled, isReady(p) && settled
	return o
}

func observedPVC(c *v1beta2.EtcdCluster, p *corev1.PersistentVolumeClaim) planner.PVC {
	o := planner.PVC{
		Name:          p.Name,
		UID:           string(p.UID),
		Owned:         resources.Owns(c, p),
		Terminating:   p.DeletionTimestamp != nil,
		HasOtherOwner: resources.HasOtherOwner(c, p),
		Version:       p.Annotations[resources.AnnotationVersion],
		Joining:       resources.IsJoining(p),
		TakenBackFrom: resources.TakenBackFrom(p),
		Bound:         p.Spec.VolumeName != "",
		Drifted:       resources.HasPVCDrifted(c, p),

		OtherAttributes: resources.HasOtherAttributes(c, p),
	}
	o.Growth, o.GrowthWhy = resources.PVCGrowth(c, p)
	return o
}

func isReady(p *corev1.Pod) bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
