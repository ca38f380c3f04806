// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

type (
	clusterObject = *v1beta2.EtcdCluster
	claimObject   = *corev1.PersistentVolumeClaim
	budgetObject  = *policyv1.PodDisruptionBudget
)

// objectsPort is the live API for one controller.
type objectsPort struct{ c *manager }

func read[T metav1.Object](ctx context.Context, c *manager, k kind, name string) (T, error) {
	return call(ctx, c, "get "+kindNames[k]+" "+name, false, false, func() (T, error) {
		object, err := get[T](c.w.store, k, name)
		if err == nil {
			c.look.saw(k, object)
		}
		return object, err
	})
}

func write[T metav1.Object](ctx context.Context, c *manager, verb string, object T, do func(*store, T) (T, error)) (T, error) {
	return call(ctx, c, verb+" "+kindNames[kindOf(object)]+" "+object.GetName(), true, false, func() (T, error) {
		c.w.checks.writing(c, verb, object)
		return do(c.w.store, object)
	})
}

func (p objectsPort) erase(ctx context.Context, k kind, name string, only metav1.Preconditions) error {
	_, err := call(ctx, p.c, "delete "+kindNames[k]+" "+name, true, false, func() (struct{}, error) {
		p.c.w.checks.deleting(p.c, k, name, only)
		return struct{}{}, p.c.w.store.deleteObject(k, name, only)
	})
	return err
}

// GetCluster implements cluster.Objects.
func (p objectsPort) GetCluster(ctx context.Context, _, name string) (*v1beta2.EtcdCluster, error) {
	return read[*v1beta2.EtcdCluster](ctx, p.c, kindCluster, name)
}

// UpdateClusterStatus implements cluster.Objects. Like the API it takes the status
// and leaves everything else alone.
func (p objectsPort) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return write(ctx, p.c, "update the status of", cluster, func(s *store, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
		live, err := get[*v1beta2.EtcdCluster](s, kindCluster, c.Name)
		if err != nil {
			return nil, err
		}
		next := live.DeepCopy()
		next.ResourceVersion, next.UID, next.Status = c.ResourceVersion, c.UID, c.Status
		return update(s, next)
	})
}

// PatchFinalizers implements cluster.Objects. Like the API it takes the finalizers and
// leaves everything else alone.
func (p objectsPort) PatchFinalizers(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(ctx, p.c, "patch the finalizers of etcdclusters "+cluster.Name, true, false, func() (*v1beta2.EtcdCluster, error) {
		live, err := get[*v1beta2.EtcdCluster](p.c.w.store, kindCluster, cluster.Name)
		if err != nil {
			return nil, err
		}
		next := live.DeepCopy()
		next.ResourceVersion, next.UID, next.Finalizers = cluster.ResourceVersion, cluster.UID, cluster.Finalizers
		return update(p.c.w.store, next)
	})
}

// GetService implements cluster.Objects.
func (p objectsPort) GetService(ctx context.Context, _, name string) (*corev1.Service, error) {
	return read[*corev1.Service](ctx, p.c, kindService, name)
}

// CreateService implements cluster.Objects.
func (p objectsPort) CreateService(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	return write(ctx, p.c, "create", s, create[*corev1.Service])
}

// UpdateService implements cluster.Objects.
func (p objectsPort) UpdateService(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	return write(ctx, p.c, "update", s, update[*corev1.Service])
}

// GetPod implements cluster.Objects.
func (p objectsPort) GetPod(ctx context.Context, _, name string) (*corev1.Pod, error) {
	return read[*corev1.Pod](ctx, p.c, kindPod, name)
}

// ListPods implements cluster.Objects.
func (p objectsPort) ListPods(ctx context.Context, _, name string) ([]corev1.Pod, error) {
	return listed(ctx, p.c, kindPod, name, func(object metav1.Object) corev1.Pod { return *object.(*corev1.Pod) })
}

func listed[T any](ctx context.Context, c *manager, k kind, cluster string, as func(metav1.Object) T) ([]T, error) {
	return call(ctx, c, "list "+kindNames[k], false, false, func() ([]T, error) {
		selector := labels.SelectorFromSet(resources.Labels(cluster))
		var list []T
		for _, object := range c.w.store.list(k) {
			if selector.Matches(labels.Set(object.GetLabels())) {
				list = append(list, as(object))
			}
		}
		return list, nil
	})
}

// CreatePod implements cluster.Objects.
func (p objectsPort) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return write(ctx, p.c, "create", pod, create[*corev1.Pod])
}

// UpdatePod implements cluster.Objects.
func (p objectsPort) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return write(ctx, p.c, "update", pod, update[*corev1.Pod])
}

// DeletePod implements cluster.Objects.
func (p objectsPort) DeletePod(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kindPod, name, only)
}

// GetClaim implements cluster.Objects.
func (p objectsPort) GetClaim(ctx context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	return read[*corev1.PersistentVolumeClaim](ctx, p.c, kindClaim, name)
}

// ListClaims implements cluster.Objects.
func (p objectsPort) ListClaims(ctx context.Context, _, name string) ([]corev1.PersistentVolumeClaim, error) {
	return listed(ctx, p.c, kindClaim, name, func(object metav1.Object) corev1.PersistentVolumeClaim { return *object.(claimObject) })
}

// ListNamespaceClaims implements cluster.Objects.
func (p objectsPort) ListNamespaceClaims(ctx context.Context, _ string) ([]corev1.PersistentVolumeClaim, error) {
	return call(ctx, p.c, "list all "+kindNames[kindClaim], false, false, func() ([]corev1.PersistentVolumeClaim, error) {
		var list []corev1.PersistentVolumeClaim
		for _, object := range p.c.w.store.list(kindClaim) {
			p.c.look.saw(kindClaim, object)
			list = append(list, *object.(claimObject).DeepCopy())
		}
		return list, nil
	})
}

// CreateClaim implements cluster.Objects.
func (p objectsPort) CreateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return write(ctx, p.c, "create", claim, create[*corev1.PersistentVolumeClaim])
}

// UpdateClaim implements cluster.Objects.
func (p objectsPort) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return write(ctx, p.c, "update", claim, updateClaim)
}

// DeleteClaim implements cluster.Objects.
func (p objectsPort) DeleteClaim(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kindClaim, name, only)
}

// GetPodDisruptionBudget implements cluster.Objects.
func (p objectsPort) GetPodDisruptionBudget(ctx context.Context, _, name string) (*policyv1.PodDisruptionBudget, error) {
	return read[*policyv1.PodDisruptionBudget](ctx, p.c, kindBudget, name)
}

// CreatePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) CreatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return write(ctx, p.c, "create", b, create[*policyv1.PodDisruptionBudget])
}

// UpdatePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) UpdatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return write(ctx, p.c, "update", b, update[*policyv1.PodDisruptionBudget])
}

// DeletePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) DeletePodDisruptionBudget(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kindBudget, name, only)
}

// etcdPort is etcd for one controller.
type etcdPort struct{ c *manager }

// addressOf returns the address that is dialed for an endpoint.
func addressOf(endpoint etcd.Endpoint) string {
	host, _, err := net.SplitHostPort(endpoint.Address)
	if err != nil {
		return ""
	}
	return host
}

// at returns the process behind an endpoint, if the controller reaches it.
func (p etcdPort) at(endpoint etcd.Endpoint) *process {
	found := p.c.w.etcd.serving(addressOf(endpoint))
	if found == nil || p.c.w.etcd.hidden(found.run) {
		return nil
	}
	return found
}

// silenceTakes is how long the controller waits for a member that does not answer.
const silenceTakes = time.Second

// Statuses implements cluster.Etcd.
func (p etcdPort) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	results, err := call(ctx, p.c, "ask the members", false, true, func() (map[string]etcd.StatusResult, error) {
		return p.statuses(target), nil
	})
	if err == nil {
		return results
	}
	results = map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		results[e.Name] = etcd.StatusResult{Err: err}
	}
	return results
}

func (p etcdPort) statuses(target etcd.Target) map[string]etcd.StatusResult {
	results := map[string]etcd.StatusResult{}
	silent := false
	for _, e := range target.Endpoints {
		if found := p.at(e); found != nil {
			results[e.Name] = etcd.StatusResult{Health: p.c.w.etcd.health(found)}
			continue
		}
		kind := etcd.ErrTimeout
		if p.c.w.refuses(addressOf(e)) {
			kind = etcd.ErrUnavailable
		}
		silent = silent || errors.Is(kind, etcd.ErrTimeout)
		results[e.Name] = etcd.StatusResult{Err: &etcd.Error{Op: "status", Member: e.Name, Kind: kind}}
	}
	p.c.look.asked(p.c.w, results)
	if silent {
		p.c.w.advance(silenceTakes)
	}
	return results
}

// refuses is true if connections to an address are refused at once: its pod is there and
// nothing listens in it. From an etcd that starts, and from an address where nobody is,
// nothing comes.
func (w *World) refuses(ip string) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		return r.ip == ip && r.process == nil && !r.over && r.node.up && !w.etcd.hidden(r)
	})
}

// Members implements cluster.Etcd.
func (p etcdPort) Members(ctx context.Context, target etcd.Target) (etcd.Membership, error) {
	return call(ctx, p.c, "list members", false, true, func() (etcd.Membership, error) {
		var failed error = &etcd.Error{Op: "list members", Kind: etcd.ErrUnavailable}
		for _, e := range target.Endpoints {
			found := p.at(e)
			if found == nil {
				continue
			}
			list, err := p.c.w.etcd.list(found)
			if err == nil {
				p.c.look.listed(p.c.w, found.dir.lineage)
				return list, nil
			}
			failed = err
		}
		return etcd.Membership{}, failed
	})
}

// OwnMembers implements cluster.Etcd.
func (p etcdPort) OwnMembers(ctx context.Context, _ etcd.Target, endpoint etcd.Endpoint) (etcd.Membership, error) {
	return call(ctx, p.c, "list own members", false, true, func() (etcd.Membership, error) {
		found := p.at(endpoint)
		if found == nil {
			return etcd.Membership{}, &etcd.Error{Op: "list own members", Member: endpoint.Name, Kind: etcd.ErrUnavailable}
		}
		return p.c.w.etcd.ownList(found)
	})
}

// change sends a change to the first member that answers.
func (p etcdPort) change(ctx context.Context, name string, target etcd.Target, do func(*process) error) error {
	_, err := call(ctx, p.c, name, true, true, func() (struct{}, error) {
		for _, e := range target.Endpoints {
			if found := p.at(e); found != nil {
				return struct{}{}, do(found)
			}
		}
		return struct{}{}, &etcd.Error{Op: name, Kind: etcd.ErrUnavailable}
	})
	return err
}
