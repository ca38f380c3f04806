// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// byNode is the index of the pods that run on a node.
const byNode = "node"

// PodIndices find the pods on a node, in addition to what Indices find.
func PodIndices() cache.Indexers {
	return cache.Indexers{byNode: func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}}
}

// PodsOn returns the pods of an indexer with PodIndices that run on a node.
func PodsOn(pods cache.Indexer, node string) ([]metav1.Object, error) {
	found, err := pods.ByIndex(byNode, node)
	if err != nil {
		return nil, err
	}
	list := make([]metav1.Object, 0, len(found))
	for _, object := range found {
		if pod, ok := object.(*corev1.Pod); ok {
			list = append(list, pod)
		}
	}
	return list, nil
}

// Cordons knows the nodes that are cordoned. It watches these only, and keeps their metadata.
// A controller without the right to list and watch nodes knows of no cordon.
type Cordons struct {
	informer cache.SharedIndexInformer
	denied   chan struct{}
	deny     sync.Once
}

// NewCordons returns Cordons that know nothing before Run.
func NewCordons(client metadata.Interface) (*Cordons, error) {
	cordoned := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.unschedulable", "true").String()
	}
	nodes := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("nodes"), metav1.NamespaceAll, 0, cache.Indexers{}, cordoned)
	c := &Cordons{informer: nodes.Informer(), denied: make(chan struct{})}
	if err := c.informer.SetTransform(nameOnly); err != nil {
		return nil, err
	}
	return c, c.informer.SetWatchErrorHandlerWithContext(c.noteError)
}

// nameOnly keeps what is read of a node.
func nameOnly(object any) (any, error) {
	if node, ok := object.(*metav1.PartialObjectMetadata); ok {
		node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	}
	return object, nil
}

// noteError reports a missing right once: the informer tries again every 30 s or so.
func (c *Cordons) noteError(ctx context.Context, r *cache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	c.deny.Do(func() {
		klog.FromContext(ctx).Info("Cordoned nodes are not noticed, so clusters of one or two members do not leave them; allow this controller to list and watch nodes", "err", err)
		close(c.denied)
	})
}

// Run watches until ctx ends.
func (c *Cordons) Run(ctx context.Context) { c.informer.RunWithContext(ctx) }

// WaitForSync returns true when the cordoned nodes are known, or cannot be known because the
// right is missing. It returns false if ctx ends before.
func (c *Cordons) WaitForSync(ctx context.Context) bool {
	synced, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan bool, 1)
	go func() { done <- cache.WaitForCacheSync(synced.Done(), c.informer.HasSynced) }()
	select {
	case ok := <-done:
		return ok
	case <-c.denied:
		cancel()
		<-done
		return true
	}
}

// Notify has changed called with the name of each node that was cordoned or uncordoned. Other
// changes of a cordoned node are left out.
func (c *Cordons) Notify(changed func(node string)) error {
	name := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if node, ok := object.(metav1.Object); ok {
			changed(node.GetName())
		}
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: name, DeleteFunc: name})
	return err
}

// IsCordoned is true for a node that is cordoned, as far as is known.
func (c *Cordons) IsCordoned(node string) bool {
	_, found, err := c.informer.GetStore().GetByKey(node)
	return err == nil && found
}
