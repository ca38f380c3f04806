// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

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
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// cache is what the informers of one controller hold. Each kind follows the log of
// the truth with a delay of its own, and can be frozen.
type cache struct {
	w     *World
	kinds [kinds]follower
	// routed are the pods that the service for clients leads to, as far as is known here.
	routed map[types.UID]bool
	// changed is called after the cache took a change in.
	changed func()
	closed  bool
}

// follower is the informer of one kind.
type follower struct {
	table table
	// version is the newest resource version that was taken in.
	version string
	// taken is how much of the log was taken in, and announced how much of it will
	// have been when the deliveries under way have arrived.
	taken, announced int
	frozenUntil      time.Duration
	last             time.Duration // when the last delivery under way arrives
}

// newCache lists everything as it was up to lag changes ago: whoever starts may be
// answered by an API server that is behind.
func newCache(w *World, lag int) *cache {
	c := &cache{w: w, routed: map[types.UID]bool{}}
	for k := range c.kinds {
		f := &c.kinds[k]
		f.version = strconv.Itoa(firstVersion)
		for f.taken < max(0, len(w.store.log[k])-lag) {
			f.take(k, w.store.log[k][f.taken])
		}
		f.announced = f.taken
		for f.announced < len(w.store.log[k]) {
			c.announce(kind(k))
		}
	}
	c.route()
	return c
}

// announce sends the next change of a kind on its way.
func (c *cache) announce(k kind) {
	f := &c.kinds[k]
	f.announced++
	delay := c.w.dice.between(time.Millisecond, 30*time.Millisecond)
	if c.w.dice.chance(2) {
		delay = c.w.dice.between(100*time.Millisecond, 3*time.Second)
	}
	f.last = max(f.last, c.w.now+delay, f.frozenUntil)
	c.w.after(f.last-c.w.now, func() { c.deliver(k) })
}

func (c *cache) deliver(k kind) {
	f := &c.kinds[k]
	if c.closed || f.taken == len(c.w.store.log[k]) {
		return
	}
	if f.frozenUntil > c.w.now {
		c.w.after(f.frozenUntil-c.w.now, func() { c.deliver(k) })
		return
	}
	f.take(int(k), c.w.store.log[k][f.taken])
	c.route()
	if c.changed != nil {
		c.changed()
	}
}

func (f *follower) take(k int, change change) {
	f.taken++
	f.version = change.version
	// The informers ask for objects with the label of members only.
	if change.deleted || (kind(k) != kindCluster && change.object.GetLabels()[resources.LabelApp] != resources.AppName) {
		f.table.drop(change.object.GetName())
		return
	}
	f.table.put(change.object)
}

// freeze keeps the cache as it is for d.
func (c *cache) freeze(k kind, d time.Duration) {
	c.kinds[k].frozenUntil = max(c.kinds[k].frozenUntil, c.w.now+d)
}

func (c *cache) thaw() {
	for k := range c.kinds {
		c.kinds[k].frozenUntil, c.kinds[k].last = 0, 0
		for c.kinds[k].taken < len(c.w.store.log[k]) {
			c.deliver(kind(k))
		}
	}
}

// versions returns what the gate asks for: the newest resource version of each kind.
func (c *cache) versions() map[string]func() string {
	seen := func(k kind) func() string {
		return func() string { return c.kinds[k].version }
	}
	return map[string]func() string{
		controller.KindOf(&v1beta2.EtcdCluster{}):          seen(kindCluster),
		controller.KindOf(&corev1.Service{}):               seen(kindService),
		controller.KindOf(&corev1.Pod{}):                   seen(kindPod),
		controller.KindOf(&corev1.PersistentVolumeClaim{}): seen(kindClaim),
		controller.KindOf(&policyv1.PodDisruptionBudget{}): seen(kindBudget),
	}
}

func cached[T metav1.Object](c *cache, k kind, name string) (T, error) {
	object, found := c.kinds[k].table.get(name).(T)
	if !found {
		return object, apierrors.NewNotFound(k.resource(), name)
	}
	return object, nil
}

func members[T metav1.Object](c *cache, k kind, cluster string) []T {
	var list []T
	for _, name := range c.kinds[k].table.names {
		if object := c.kinds[k].table.byName[name].(T); object.GetLabels()[resources.LabelCluster] == cluster {
			list = append(list, object)
		}
	}
	return list
}

// Cluster implements cluster.Cache.
func (c *cache) Cluster(_, name string) (*v1beta2.EtcdCluster, error) {
	return cached[*v1beta2.EtcdCluster](c, kindCluster, name)
}

// Service implements cluster.Cache.
func (c *cache) Service(_, name string) (*corev1.Service, error) {
	return cached[*corev1.Service](c, kindService, name)
}

// PodDisruptionBudget implements cluster.Cache.
func (c *cache) PodDisruptionBudget(_, name string) (*policyv1.PodDisruptionBudget, error) {
	return cached[*policyv1.PodDisruptionBudget](c, kindBudget, name)
}

// Pods implements cluster.Cache.
func (c *cache) Pods(_, name string) ([]*corev1.Pod, error) {
	return members[*corev1.Pod](c, kindPod, name), nil
}

// Claims implements cluster.Cache.
func (c *cache) Claims(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return members[*corev1.PersistentVolumeClaim](c, kindClaim, name), nil
}

// route lets the service for clients follow the pods: who is ready is led to at once,
// and who is not any more a while later.
func (c *cache) route() {
	for _, pod := range members[*corev1.Pod](c, kindPod, clusterName) {
		if c.leadsTo(pod) {
			c.routed[pod.UID] = true
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.routed)) {
		if !c.leadsToUID(uid) {
			c.w.after(c.w.dice.between(time.Millisecond, time.Second), func() { c.unroute(uid) })
		}
	}
}

func (c *cache) unroute(uid types.UID) {
	if c.closed || !c.routed[uid] || c.leadsToUID(uid) {
		return
	}
	delete(c.routed, uid)
	if c.changed != nil {
		c.changed()
	}
}

func (c *cache) leadsToUID(uid types.UID) bool {
	for _, pod := range members[*corev1.Pod](c, kindPod, clusterName) {
		if pod.UID == uid {
			return c.leadsTo(pod)
		}
	}
	return false
}

func (c *cache) leadsTo(pod *corev1.Pod) bool {
	return isReady(pod) && pod.DeletionTimestamp == nil && pod.Labels[resources.LabelRole] == resources.RoleVoter
}

// Routed implements cluster.Cache.
func (c *cache) Routed(string, string) (map[types.UID]bool, error) { return c.routed, nil }
