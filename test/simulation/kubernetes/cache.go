// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Cache is what the informers of one controller hold. Each kind follows the log of
// the truth with a delay of its own, and can be frozen.
type Cache struct {
	w     *World
	Kinds [Kinds]follower
	// inEndpoints are the pods that the client Service leads to, as far as is known here.
	inEndpoints map[types.UID]bool
	// cordoned are the nodes that are cordoned, as far as is known here.
	cordoned map[string]bool
	// record is the last one that was read, and kept is what the controller keeps of it.
	record, kept *corev1.ConfigMap
	// Changed is called after the cache took a change in.
	Changed func()
	Closed  bool
}

// follower is the informer of one kind.
type follower struct {
	table table
	// Version is the newest resource version that was taken in.
	Version string
	// taken is how much of the log was taken in, and announced how much of it will
	// have been when the deliveries under way have arrived.
	taken, announced int
	FrozenUntil      time.Duration
	last             time.Duration // when the last delivery under way arrives
}

// NewCache lists everything as it was up to lag changes ago: a controller that starts may
// read from an API server that is behind.
func (w *World) NewCache(lag int) *Cache {
	c := &Cache{w: w, inEndpoints: map[types.UID]bool{}, cordoned: map[string]bool{}}
	for _, n := range w.Nodes {
		c.cordoned[n.name] = n.Cordoned
	}
	for k := range c.Kinds {
		f := &c.Kinds[k]
		f.Version = strconv.Itoa(firstVersion)
		for f.taken < max(0, len(w.Store.log[k])-lag) {
			f.take(k, w.Store.log[k][f.taken])
		}
		f.announced = f.taken
		for f.announced < len(w.Store.log[k]) {
			c.announce(Kind(k))
		}
	}
	c.route()
	return c
}

// announce sends the next change of a kind on its way.
func (c *Cache) announce(k Kind) {
	f := &c.Kinds[k]
	f.announced++
	delay := c.w.Dice.Between(time.Millisecond, 30*time.Millisecond)
	if c.w.Dice.Chance(2) {
		delay = c.w.Dice.Between(100*time.Millisecond, 3*time.Second)
	}
	f.last = max(f.last, c.w.Elapsed+delay, f.FrozenUntil)
	c.w.After(f.last-c.w.Elapsed, func() { c.deliver(k) })
}

func (c *Cache) deliver(k Kind) {
	f := &c.Kinds[k]
	if c.Closed || f.taken == len(c.w.Store.log[k]) {
		return
	}
	if f.FrozenUntil > c.w.Elapsed {
		c.w.After(f.FrozenUntil-c.w.Elapsed, func() { c.deliver(k) })
		return
	}
	f.take(int(k), c.w.Store.log[k][f.taken])
	c.route()
	if c.Changed != nil {
		c.Changed()
	}
}

func (f *follower) take(k int, change change) {
	f.taken++
	f.Version = change.version
	// The informers ask for objects with the label of members only.
	if change.deleted || (Kind(k) != KindCluster && change.object.GetLabels()[resources.LabelApp] != resources.AppName) {
		f.table.drop(change.object.GetName())
		return
	}
	f.table.Put(change.object)
}

// Freeze keeps the cache as it is for d.
func (c *Cache) Freeze(k Kind, d time.Duration) {
	c.Kinds[k].FrozenUntil = max(c.Kinds[k].FrozenUntil, c.w.Elapsed+d)
}

// Thaw ends all delays: the cache holds what the API holds.
func (c *Cache) Thaw() {
	for k := range c.Kinds {
		c.Kinds[k].FrozenUntil, c.Kinds[k].last = 0, 0
		for c.Kinds[k].taken < len(c.w.Store.log[k]) {
			c.deliver(Kind(k))
		}
	}
}

// Versions returns what the gate asks for: the newest resource version of each kind.
func (c *Cache) Versions() map[string]func() string {
	seen := func(k Kind) func() string {
		return func() string { return c.Kinds[k].Version }
	}
	return map[string]func() string{
		reconcile.KindOf(&v1beta2.EtcdCluster{}):          seen(KindCluster),
		reconcile.KindOf(&corev1.Service{}):               seen(KindService),
		reconcile.KindOf(&corev1.ConfigMap{}):             seen(KindRecord),
		reconcile.KindOf(&corev1.Pod{}):                   seen(KindPod),
		reconcile.KindOf(&corev1.PersistentVolumeClaim{}): seen(KindPVC),
		reconcile.KindOf(&policyv1.PodDisruptionBudget{}): seen(KindBudget),
	}
}

func cached[T metav1.Object](c *Cache, k Kind, name string) (T, error) {
	object, found := c.Kinds[k].table.Get(name).(T)
	if !found {
		return object, apierrors.NewNotFound(k.Resource(), name)
	}
	return object, nil
}

func members[T metav1.Object](c *Cache, k Kind, cluster string) []T {
	var list []T
	for _, name := range c.Kinds[k].table.names {
		if object := c.Kinds[k].table.byName[name].(T); object.GetLabels()[resources.LabelCluster] == cluster {
			list = append(list, object)
		}
	}
	return list
}

// Cluster implements cluster.Cache.
func (c *Cache) Cluster(_, name string) (*v1beta2.EtcdCluster, error) {
	return cached[*v1beta2.EtcdCluster](c, KindCluster, name)
}

// Service implements cluster.Cache.
func (c *Cache) Service(_, name string) (*corev1.Service, error) {
	return cached[*corev1.Service](c, KindService, name)
}

// ConfigMap implements cluster.Cache.
func (c *Cache) ConfigMap(_, name string) (*corev1.ConfigMap, error) {
	record, err := cached[*corev1.ConfigMap](c, KindRecord, name)
	if err != nil {
		return nil, err
	}
	if record != c.record {
		c.record, c.kept = record, resources.CachedRecord(record)
	}
	return c.kept, nil
}

// HiddenPods implements cluster.Cache.
func (c *Cache) HiddenPods(_, name string) ([]*corev1.Pod, error) {
	return hidden[*corev1.Pod](c, KindPod, name), nil
}

// HiddenPVCs implements cluster.Cache.
func (c *Cache) HiddenPVCs(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return hidden[*corev1.PersistentVolumeClaim](c, KindPVC, name), nil
}

func hidden[T metav1.Object](c *Cache, k Kind, cluster string) []T {
	var list []T
	for _, name := range c.Kinds[k].table.names {
		if object := c.Kinds[k].table.byName[name].(T); resources.IsHidden(object.GetLabels(), cluster) {
			list = append(list, object)
		}
	}
	return list
}

// PodDisruptionBudget implements cluster.Cache.
func (c *Cache) PodDisruptionBudget(_, name string) (*policyv1.PodDisruptionBudget, error) {
	return cached[*policyv1.PodDisruptionBudget](c, KindBudget, name)
}

// Pods implements cluster.Cache.
func (c *Cache) Pods(_, name string) ([]*corev1.Pod, error) {
	return members[*corev1.Pod](c, KindPod, name), nil
}

// PVCs implements cluster.Cache.
func (c *Cache) PVCs(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return members[*corev1.PersistentVolumeClaim](c, KindPVC, name), nil
}

// route lets the client Service follow the pods: it leads to a ready pod at once, and
// away from one that is no longer ready a while later.
func (c *Cache) route() {
	for _, pod := range members[*corev1.Pod](c, KindPod, schedules.ClusterName) {
		if c.leadsTo(pod) {
			c.inEndpoints[pod.UID] = true
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.inEndpoints)) {
		if !c.leadsToUID(uid) {
			c.w.After(c.w.Dice.Between(time.Millisecond, time.Second), func() { c.unroute(uid) })
		}
	}
}

func (c *Cache) unroute(uid types.UID) {
	if c.Closed || !c.inEndpoints[uid] || c.leadsToUID(uid) {
		return
	}
	delete(c.inEndpoints, uid)
	if c.Changed != nil {
		c.Changed()
	}
}

func (c *Cache) leadsToUID(uid types.UID) bool {
	for _, pod := range members[*corev1.Pod](c, KindPod, schedules.ClusterName) {
		if pod.UID == uid {
			return c.leadsTo(pod)
		}
	}
	return false
}

func (c *Cache) leadsTo(pod *corev1.Pod) bool {
	return IsReady(pod) && pod.DeletionTimestamp == nil && pod.Labels[resources.LabelRole] == resources.RoleVoter
}

// PodsInEndpoints implements cluster.Cache.
func (c *Cache) PodsInEndpoints(string, string) (map[types.UID]bool, error) {
	return c.inEndpoints, nil
}

// Pod implements cluster.Cache.
func (c *Cache) Pod(_, name string) (*corev1.Pod, error) {
	return cached[*corev1.Pod](c, KindPod, name)
}

// PVC implements cluster.Cache.
func (c *Cache) PVC(_, name string) (*corev1.PersistentVolumeClaim, error) {
	return cached[PVC](c, KindPVC, name)
}
