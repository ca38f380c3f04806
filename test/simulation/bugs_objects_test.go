// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// bugsOfObjects are mistakes with Kubernetes objects.
func bugsOfObjects() []bug {
	return []bug{
		{name: "makes a new cluster when no pod is left", rules: "S4", wrap: deciding(startAgain)},
		{name: "names the seed anew at each attempt", rules: "S4", wrap: deciding(anotherSeed)},
		{name: "takes the token of the cluster from its name", rules: "S4", wrap: writing(func(_ *manager, c cluster.Config) cluster.Objects { return namedToken{c.Objects} })},
		{name: "gives the volume of a removed member to a new one", rules: "S5", wrap: ordinals, story: shrinkAndGrow},
		{name: "deletes by name, not by UID", rules: "S5", wrap: writing(func(_ *manager, c cluster.Config) cluster.Objects { return byName{c.Objects} })},
		{name: "deletes what a list has shown", rules: "S5", wrap: writing(func(_ *manager, c cluster.Config) cluster.Objects { return unseen{c.Objects, c.Cache} })},
		{name: "lets garbage collection delete PVCs", rules: "S5", wrap: writing(func(_ *manager, c cluster.Config) cluster.Objects { return ownedClaims{c.Objects} }), story: vanish},
		{name: "trusts a list that is older than its own write", rules: "S2 S5", wrap: cacheOnly},
		{name: "takes the pods of a cluster of size 0 away that has no volumes", rules: "S1", wrap: doing(sleepWithoutVolumes), admitted: true},
		{name: "guards only the declared size against evictions", rules: "budget", wrap: writing(func(_ *manager, c cluster.Config) cluster.Objects { return declaredBudget{c.Objects, c.Cache} }), story: shrinkAndDrain},
		{name: "writes the services again and again", rules: "L3", wrap: deciding(writeServices)},
		{name: "writes a status every second in which nothing has changed", rules: "L3", wrap: writeStatus(time.Second)},
		{name: "writes such a status twice a minute", rules: "L3", wrap: writeStatus(30 * time.Second)},
	}
}

// ownedClaims never takes the owner reference from a PVC.
type ownedClaims struct{ cluster.Objects }

// UpdateClaim implements cluster.Objects.
func (o ownedClaims) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	claim = claim.DeepCopy()
	claim.OwnerReferences = []metav1.OwnerReference{resources.Owner(&v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
		Name: clusterName, UID: types.UID(claim.Annotations[resources.AnnotationClusterUID]),
	}})}
	return o.Objects.UpdateClaim(ctx, claim)
}

// vanish is a cluster that was made after the backup that the API is brought back from.
func vanish(s *Schedule) {
	s.Size, s.Volumes, s.Version = 3, true, versionLines[0][0]
	s.Events = []Event{
		{At: 20 * time.Second, Kind: EventOldAPI, For: 5 * time.Minute},
		{At: 30 * time.Second, Kind: EventRecreate},
	}
}

// seedPod is a pod that starts a new cluster.
func seedPod(o planner.Observed) *corev1.Pod {
	return resources.Pod(o.Cluster, resources.MemberPod{
		Name: o.NewName, Seed: true, Token: string(o.Cluster.UID),
		InitialCluster: []resources.Peer{{Name: o.NewName, URL: resources.PeerURL(o.Cluster, o.NewName)}},
	})
}

func startAgain(_ *manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	plan := decide(o)
	owned := slices.ContainsFunc(o.Pods, func(p planner.Pod) bool { return p.Owned })
	if plan.Rule == "quorum" && !owned && len(o.Claims) == 0 {
		_, _ = c.Objects.CreatePod(context.Background(), seedPod(o))
		return instead(plan)
	}
	return plan
}

// anotherSeed takes whichever pod it sees for the seed, and makes one if it sees none.
func anotherSeed(_ *manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	for i := range o.Pods {
		if o.Pods[i].Owned && o.PeerService.ClusterID == "" {
			o.PeerService.Seed = o.Pods[i].Name
		}
	}
	plan := decide(o)
	for _, a := range plan.Actions {
		if _, seeds := a.(planner.CreateSeed); seeds && o.Cluster.Spec.Pod == nil {
			_, _ = c.Objects.CreatePod(context.Background(), seedPod(o))
			return instead(plan)
		}
	}
	return plan
}

type namedToken struct{ cluster.Objects }

// CreatePod implements cluster.Objects.
func (o namedToken) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	for i := range pod.Spec.Containers {
		command := pod.Spec.Containers[i].Command
		for j := range command {
			if strings.HasPrefix(command[j], "--initial-cluster-token=") {
				command[j] = "--initial-cluster-token=" + clusterName + "." + namespace
			}
		}
	}
	return o.Objects.CreatePod(ctx, pod)
}

// ordinals counts members from 0 and keeps the volumes of those that were removed.
func ordinals(m *manager, c cluster.Config) cluster.Config {
	c.Suffix = func() string {
		for n := 0; ; n++ {
			name := fmt.Sprintf("%s-%d", clusterName, n)
			if _, taken := lookup[*corev1.Pod](m.w.store, kindPod, name); !taken && !m.w.etcd.lists(name) {
				return fmt.Sprint(n)
			}
		}
	}
	c.Objects = usedClaims{c.Objects}
	return deciding(func(_ *manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		if o.Etcd.Linearizable {
			o.Claims = slices.DeleteFunc(slices.Clone(o.Claims), func(claim planner.Claim) bool {
				return !slices.Contains(namesOf(o), claim.Name)
			})
		}
		plan := decide(o)
		plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a planner.Action) bool {
			_, deletes := a.(planner.DeleteClaim)
			return deletes
		})
		return plan
	})(m, c)
}

// usedClaims takes a PVC that exists for one that no member has used.
type usedClaims struct{ cluster.Objects }

// CreateClaim implements cluster.Objects.
func (o usedClaims) CreateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	live, err := o.GetClaim(ctx, claim.Namespace, claim.Name)
	if err != nil {
		return o.Objects.CreateClaim(ctx, claim)
	}
	live = live.DeepCopy()
	metav1.SetMetaDataAnnotation(&live.ObjectMeta, resources.AnnotationMembership, resources.MembershipAwaited)
	return o.UpdateClaim(ctx, live)
}

// shrinkAndGrow removes two members and adds as many.
func shrinkAndGrow(s *Schedule) {
	s.Size, s.Volumes, s.Events = 3, true, []Event{
		{At: time.Minute, Kind: EventScale, A: 0},
		{At: 3 * time.Minute, Kind: EventScale, A: 2},
	}
}

// lists is true if some etcd has a member with a name.
func (e *etcdWorld) lists(name string) bool {
	for _, l := range e.lineages {
		for i := range l.members.peers {
			if strings.Contains(l.members.peers[i].url, "//"+name+".") {
				return true
			}
		}
	}
	return false
}

type byName struct{ cluster.Objects }

// DeletePod implements cluster.Objects.
func (o byName) DeletePod(ctx context.Context, namespace, name string, _ metav1.Preconditions) error {
	return o.Objects.DeletePod(ctx, namespace, name, metav1.Preconditions{})
}

// DeleteClaim implements cluster.Objects.
func (o byName) DeleteClaim(ctx context.Context, namespace, name string, _ metav1.Preconditions) error {
	return o.Objects.DeleteClaim(ctx, namespace, name, metav1.Preconditions{})
}

// unseen reads pods and claims from the cache where the live API should be asked.
type unseen struct {
	cluster.Objects
	cache cluster.Cache
}

// GetPod implements cluster.Objects.
func (o unseen) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	pods, err := o.cache.Pods(namespace, clusterName)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if p.Name == name {
			return p.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(kindPod.resource(), name)
}

// GetClaim implements cluster.Objects.
func (o unseen) GetClaim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claims, err := o.cache.Claims(namespace, clusterName)
	if err != nil {
		return nil, err
	}
	for _, p := range claims {
		if p.Name == name {
			return p.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(kindClaim.resource(), name)
}

// cacheOnly does not wait for its own writes to show, and asks nobody else.
func cacheOnly(m *manager, c cluster.Config) cluster.Config {
	c.Gate = openGate{}
	c.Objects = believing{unseen{c.Objects, c.Cache}, m}
	return c
}

type openGate struct{}

// Ready, Note and Forget implement cluster.Gate.
func (openGate) Ready(types.NamespacedName) bool          { return true }
func (openGate) Note(types.NamespacedName, metav1.Object) {}
func (openGate) Forget(types.NamespacedName)              {}

// believing takes what the cache shows for what is.
type believing struct {
	unseen
	m *manager
}

// GetPod implements cluster.Objects.
func (o believing) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := o.unseen.GetPod(ctx, namespace, name)
	if err == nil {
		o.m.look.saw(kindPod, pod)
	}
	return pod, err
}

// GetClaim implements cluster.Objects.
func (o believing) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := o.unseen.GetClaim(ctx, namespace, name)
	if err == nil {
		o.m.look.saw(kindClaim, claim)
	}
	return claim, err
}

// GetCluster implements cluster.Objects.
func (o believing) GetCluster(_ context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return o.cache.Cluster(namespace, name)
}

func sleepWithoutVolumes(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != "hibernate" {
		return plan
	}
	for _, p := range o.Pods {
		if p.Owned && !p.Terminating && len(o.Claims) == 0 {
			plan.Actions = append(plan.Actions, planner.DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	return plan
}

// declaredBudget forgets that a cluster may have more voters than are declared.
type declaredBudget struct {
	cluster.Objects
	cache cluster.Cache
}

func (o declaredBudget) lower(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	declared, err := o.cache.Cluster(namespace, clusterName)
	if err != nil {
		return b
	}
	b = b.DeepCopy()
	least := intstr.FromInt32(*declared.Spec.Replicas/2 + 1)
	b.Spec.MinAvailable = &least
	return b
}

// CreatePodDisruptionBudget implements cluster.Objects.
func (o declaredBudget) CreatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return o.Objects.CreatePodDisruptionBudget(ctx, o.lower(b))
}

// UpdatePodDisruptionBudget implements cluster.Objects.
func (o declaredBudget) UpdatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return o.Objects.UpdatePodDisruptionBudget(ctx, o.lower(b))
}

// shrinkAndDrain evicts pods while a cluster shrinks.
func shrinkAndDrain(s *Schedule) {
	s.Size = 5
	at := time.Minute
	s.Events = append(s.Events, Event{At: at, Kind: EventScale})
	for i := range 6 {
		at += 150 * time.Millisecond
		s.Events = append(s.Events, Event{At: at, Kind: EventEvict, A: i})
	}
	slices.SortStableFunc(s.Events, func(a, b Event) int { return int(a.At - b.At) })
}

func writeServices(_ *manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	if service, err := c.Objects.GetService(context.Background(), namespace, clusterName); err == nil {
		service = service.DeepCopy()
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, "written", o.Now.String())
		_, _ = c.Objects.UpdateService(context.Background(), service)
	}
	return decide(o)
}

// writeStatus writes what a status has said already, with the time of day, no more often
// than this.
func writeStatus(every time.Duration) func(*manager, cluster.Config) cluster.Config {
	return func(m *manager, c cluster.Config) cluster.Config {
		last := time.Time{}
		return deciding(func(_ *manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
			if live, err := c.Objects.GetCluster(context.Background(), namespace, clusterName); err == nil && o.Now.Sub(last) >= every {
				last = o.Now
				live = live.DeepCopy()
				for i := range live.Status.Conditions {
					live.Status.Conditions[i].LastUpdateTime = o.Now.Format(time.RFC3339)
				}
				_, _ = c.Objects.UpdateClusterStatus(context.Background(), live)
			}
			plan := decide(o)
			if plan.RequeueAfter == 0 || plan.RequeueAfter > every {
				plan.RequeueAfter = every
			}
			return plan
		})(m, c)
	}
}
