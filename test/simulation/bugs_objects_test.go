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
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfObjects are mistakes with Kubernetes objects.
func bugsOfObjects() []bug {
	return []bug{
		{name: "bootstraps again when no pod is left", rules: "S4", wrap: deciding(startAgain)},
		{name: "chooses another bootstrap member at each attempt", rules: "S4", wrap: deciding(anotherBootstrapMember)},
		{name: "bootstraps again when the record is lost", rules: "S4", wrap: deciding(startUnrecorded), story: lostRecords},
		{name: "derives the cluster token from the name of the cluster", rules: "S4", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return namedToken{c.Objects} })},
		{name: "gives the PVC of a removed member to a new one", rules: "S5", wrap: ordinals, story: shrinkAndGrow},
		{name: "deletes by name, not by UID", rules: "S5", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return byName{c.Objects} })},
		{name: "deletes objects that it has not read live", rules: "S5", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return unseen{c.Objects, c.Cache} })},
		{name: "lets garbage collection delete PVCs", rules: "S5", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return ownedPVCs{c.Objects} }), story: vanish},
		{name: "trusts a list that is older than its own write", rules: "S2 S5", wrap: cacheOnly},
		{name: "deletes the pods of a hibernated cluster that has no PVCs", rules: "S1", wrap: doing(sleepWithoutVolumes), admitted: true},
		{name: "computes the PodDisruptionBudget from the desired size only", rules: "budget", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return desiredBudget{c.Objects, c.Cache} }), story: shrinkAndDrain},
		{name: "writes unchanged Services again and again", rules: "L3", wrap: deciding(writeServices)},
		{name: "writes a status every second in which nothing has changed", rules: "L3", wrap: writeStatus(time.Second)},
		{name: "writes a status twice a minute in which nothing has changed", rules: "L3", wrap: writeStatus(30 * time.Second)},
	}
}

// ownedPVCs never takes the owner reference from a PVC.
type ownedPVCs struct{ cluster.Objects }

// UpdatePVC implements cluster.Objects.
func (o ownedPVCs) UpdatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	pvc = pvc.DeepCopy()
	pvc.OwnerReferences = []metav1.OwnerReference{resources.Owner(&v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
		Name: schedules.ClusterName, UID: types.UID(pvc.Annotations[resources.AnnotationClusterUID]),
	}})}
	return o.Objects.UpdatePVC(ctx, pvc)
}

// vanish is a cluster that was made after the backup that the API is brought back from.
func vanish(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Version = 3, true, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: 20 * time.Second, Kind: schedules.EventOldAPI, For: 5 * time.Minute},
		{At: 30 * time.Second, Kind: schedules.EventRecreate},
	}
}

// seedPod is a pod that starts a new cluster.
func seedPod(o planner.Observed) *corev1.Pod {
	return resources.Pod(o.Cluster, resources.MemberPod{
		Name: o.NewName, Bootstrap: true, Token: string(o.Cluster.UID),
		InitialCluster: []resources.Peer{{Name: o.NewName, URL: resources.PeerURL(o.Cluster, o.NewName)}},
	})
}

func startAgain(_ *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	plan := decide(o)
	owned := slices.ContainsFunc(o.Pods, func(p planner.Pod) bool { return p.Owned })
	if plan.Rule == planner.RuleQuorum && !owned && len(o.PVCs) == 0 {
		_, _ = c.Objects.CreatePod(context.Background(), seedPod(o))
		return instead(plan)
	}
	return plan
}

// startUnrecorded takes a cluster without a record for a new one.
func startUnrecorded(_ *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	plan := decide(o)
	if o.Record.State == planner.Missing && o.Cluster.Status.Phase == v1beta2.ClusterPhaseRunning && o.Cluster.Spec.Pod == nil {
		_, _ = c.Objects.CreatePod(context.Background(), seedPod(o))
	}
	return plan
}

// lostRecords deletes the record of a cluster that runs.
func lostRecords(s *schedules.Schedule) {
	s.Volumes = false
	s.Events = append(s.Events, schedules.Event{At: time.Minute, Kind: schedules.EventLoseRecord}, schedules.Event{At: 3 * time.Minute, Kind: schedules.EventLoseRecord})
}

// anotherBootstrapMember takes any pod that it observes for the bootstrap member, and creates one if it observes none.
func anotherBootstrapMember(_ *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	for i := range o.Pods {
		if o.Pods[i].Owned && o.Record.ClusterID == "" {
			o.BootstrapName, o.Record.BootstrapMember = o.Pods[i].Name, o.Pods[i].Name
		}
	}
	plan := decide(o)
	for _, a := range plan.Actions {
		if _, seeds := a.(planner.CreateBootstrapPod); seeds && o.Cluster.Spec.Pod == nil {
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
				command[j] = "--initial-cluster-token=" + schedules.ClusterName + "." + schedules.Namespace
			}
		}
	}
	return o.Objects.CreatePod(ctx, pod)
}

// ordinals counts members from 0 and keeps the volumes of those that were removed.
func ordinals(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Suffix = func() string {
		for n := 0; ; n++ {
			name := fmt.Sprintf("%s-%d", schedules.ClusterName, n)
			if _, taken := kubernetes.Lookup[*corev1.Pod](m.W.Store, kubernetes.KindPod, name); !taken && !m.W.Etcd.Lists(name) {
				return fmt.Sprint(n)
			}
		}
	}
	c.Objects = usedPVCs{c.Objects}
	return deciding(func(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		o.Record.Removed = nil // no prepared pod keeps the name of a removed member
		if o.Etcd.Linearizable {
			o.PVCs = slices.DeleteFunc(slices.Clone(o.PVCs), func(pvc planner.PVC) bool {
				return !slices.Contains(namesOf(o), pvc.Name)
			})
		}
		plan := decide(o)
		plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a planner.Action) bool {
			_, deletes := a.(planner.DeletePVC)
			return deletes
		})
		return plan
	})(m, c)
}

// usedPVCs takes a PVC that exists for one that no member has used.
type usedPVCs struct{ cluster.Objects }

// CreatePVC implements cluster.Objects.
func (o usedPVCs) CreatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	live, err := o.GetPVC(ctx, pvc.Namespace, pvc.Name)
	if err != nil {
		return o.Objects.CreatePVC(ctx, pvc)
	}
	live = live.DeepCopy()
	metav1.SetMetaDataAnnotation(&live.ObjectMeta, resources.AnnotationMembership, resources.MembershipAwaited)
	return o.UpdatePVC(ctx, live)
}

// shrinkAndGrow removes two members and adds as many.
func shrinkAndGrow(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Events = 3, true, []schedules.Event{
		{At: time.Minute, Kind: schedules.EventScale, A: 0},
		{At: 3 * time.Minute, Kind: schedules.EventScale, A: 2},
	}
}

type byName struct{ cluster.Objects }

// DeletePod implements cluster.Objects.
func (o byName) DeletePod(ctx context.Context, namespace, name string, _ metav1.Preconditions) error {
	return o.Objects.DeletePod(ctx, namespace, name, metav1.Preconditions{})
}

// StopPod implements cluster.Objects.
func (o byName) StopPod(ctx context.Context, namespace, name string, _ metav1.Preconditions) error {
	return o.Objects.StopPod(ctx, namespace, name, metav1.Preconditions{})
}

// DeletePVC implements cluster.Objects.
func (o byName) DeletePVC(ctx context.Context, namespace, name string, _ metav1.Preconditions) error {
	return o.Objects.DeletePVC(ctx, namespace, name, metav1.Preconditions{})
}

// unseen reads pods and PVCs from the cache where it should read them from the API.
type unseen struct {
	cluster.Objects
	cache cluster.Cache
}

// GetPod implements cluster.Objects.
func (o unseen) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	pods, err := o.cache.Pods(namespace, schedules.ClusterName)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if p.Name == name {
			return p.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(kubernetes.KindPod.Resource(), name)
}

// GetPVC implements cluster.Objects.
func (o unseen) GetPVC(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	pvcs, err := o.cache.PVCs(namespace, schedules.ClusterName)
	if err != nil {
		return nil, err
	}
	for _, p := range pvcs {
		if p.Name == name {
			return p.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(kubernetes.KindPVC.Resource(), name)
}

// cacheOnly does not wait until the cache shows its own writes, and reads nothing else.
func cacheOnly(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Gate = openGate{}
	c.Objects = believing{unseen{c.Objects, c.Cache}, m}
	return c
}

type openGate struct{}

// Ready, Note and Forget implement cluster.Gate.
func (openGate) IsReady(types.NamespacedName) bool { return true }

func (openGate) Note(types.NamespacedName, metav1.Object) {}

func (openGate) Compare(types.NamespacedName, metav1.Object) {}
func (openGate) Forget(types.NamespacedName)                 {}

// believing takes what the cache shows for what is.
type believing struct {
	unseen
	m *manager.Manager
}

// GetPod implements cluster.Objects.
func (o believing) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := o.unseen.GetPod(ctx, namespace, name)
	if err == nil {
		o.m.Observed.Saw(kubernetes.KindPod, pod)
	}
	return pod, err
}

// GetPVC implements cluster.Objects.
func (o believing) GetPVC(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	pvc, err := o.unseen.GetPVC(ctx, namespace, name)
	if err == nil {
		o.m.Observed.Saw(kubernetes.KindPVC, pvc)
	}
	return pvc, err
}

// GetCluster implements cluster.Objects.
func (o believing) GetCluster(_ context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return o.cache.Cluster(namespace, name)
}

func sleepWithoutVolumes(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleHibernate {
		return plan
	}
	for _, p := range o.Pods {
		if p.Owned && !p.Terminating && len(o.PVCs) == 0 {
			plan.Actions = append(plan.Actions, planner.DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	return plan
}

// desiredBudget ignores that a cluster may have more voters than its desired size.
type desiredBudget struct {
	cluster.Objects
	cache cluster.Cache
}

func (o desiredBudget) lower(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	cached, err := o.cache.Cluster(schedules.Namespace, schedules.ClusterName)
	if err != nil {
		return b
	}
	b = b.DeepCopy()
	least := intstr.FromInt32(*cached.Spec.Replicas/2 + 1)
	b.Spec.MinAvailable = &least
	return b
}

// CreatePodDisruptionBudget implements cluster.Objects.
func (o desiredBudget) CreatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return o.Objects.CreatePodDisruptionBudget(ctx, o.lower(b))
}

// UpdatePodDisruptionBudget implements cluster.Objects.
func (o desiredBudget) UpdatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return o.Objects.UpdatePodDisruptionBudget(ctx, o.lower(b))
}

// shrinkAndDrain evicts pods while a cluster shrinks.
func shrinkAndDrain(s *schedules.Schedule) {
	s.Size = 5
	at := time.Minute
	s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventScale})
	for i := range 6 {
		at += 150 * time.Millisecond
		s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventEvict, A: i})
	}
	slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
}

func writeServices(_ *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
	if service, err := c.Objects.GetService(context.Background(), schedules.Namespace, schedules.ClusterName); err == nil {
		service = service.DeepCopy()
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, "written", o.Now.String())
		_, _ = c.Objects.UpdateService(context.Background(), service)
	}
	return decide(o)
}

// writeStatus writes what a status has said already, with the time of day, no more often
// than this.
func writeStatus(every time.Duration) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		last := time.Time{}
		return deciding(func(_ *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan {
			if live, err := c.Objects.GetCluster(context.Background(), schedules.Namespace, schedules.ClusterName); err == nil && o.Now.Sub(last) >= every {
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
