// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	kubelets  = 8
	retryBase = 20 * time.Millisecond
	retryMax  = time.Second
)

var errNoCache = errors.New("the pods could not be listed")

// Kubelet says of each pod of a member that it runs, and starts the member in Etcd when
// the pod was admitted.
type Kubelet struct {
	client    kubernetes.Interface
	etcd      *Etcd
	namespace string
	pods      cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu   sync.Mutex
	last int
	// at holds the address and UID of each pod, and whether its member was started.
	at map[types.NamespacedName]*placed
}

type placed struct {
	ip      string
	uid     types.UID
	started bool
}

// NewKubelet returns a kubelet for the pods of one namespace.
func NewKubelet(client kubernetes.Interface, etcd *Etcd, namespace string) *Kubelet {
	return &Kubelet{
		client: client, etcd: etcd, namespace: namespace,
		last: 1 + rand.IntN(200)<<16, // tests at the same time have other addresses
		at:   map[types.NamespacedName]*placed{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)),
	}
}

// Run runs until ctx ends.
func (k *Kubelet) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithNamespace(k.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = resources.LabelApp + "=" + resources.AppName }))
	k.pods = factory.Core().V1().Pods().Informer()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			k.queue.Add(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
		}
	}
	_, err := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), k.pods.HasSynced) {
		return errNoCache
	}
	defer context.AfterFunc(ctx, k.queue.ShutDown)()
	var group sync.WaitGroup
	for range kubelets {
		group.Go(func() {
			for {
				key, shutdown := k.queue.Get()
				if shutdown {
					return
				}
				if err := k.sync(ctx, key); err != nil && ctx.Err() == nil {
					k.queue.AddRateLimited(key)
				} else {
					k.queue.Forget(key)
				}
				k.queue.Done(key)
			}
		})
	}
	group.Wait()
	return nil
}

// Address returns where the member of a pod listens; empty if there is no such pod.
func (k *Kubelet) Address(pod string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.at[types.NamespacedName{Namespace: k.namespace, Name: pod}]; p != nil {
		return address(p.ip)
	}
	return ""
}

func address(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(resources.ClientPort)) }

// place gives a pod an address; one with another UID is another pod.
func (k *Kubelet) place(key types.NamespacedName, uid types.UID) *placed {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.at[key]
	if p == nil || p.uid != uid {
		k.last++
		p = &placed{ip: fmt.Sprintf("127.%d.%d.%d", 20+k.last>>16, k.last>>8&255, k.last&255), uid: uid}
		k.at[key] = p
	}
	return p
}

// forget ends the member of a deleted pod.
func (k *Kubelet) forget(key types.NamespacedName, but types.UID) {
	k.mu.Lock()
	p := k.at[key]
	if p == nil || p.uid == but {
		k.mu.Unlock()
		return
	}
	delete(k.at, key)
	k.mu.Unlock()
	k.etcd.Stop(address(p.ip))
}

func (k *Kubelet) sync(ctx context.Context, key types.NamespacedName) error {
	object, exists, err := k.pods.GetStore().GetByKey(key.String())
	if err != nil {
		return err
	}
	pod, ok := object.(*corev1.Pod)
	if !exists || !ok {
		k.forget(key, "")
		return nil
	}
	k.forget(key, pod.UID)
	at := k.place(key, pod.UID)
	prepared := resources.IsPrepared(pod.Annotations)
	if !prepared && !at.started {
		initial := pod.Annotations[resources.AnnotationInitialCluster]
		cluster := pod.Namespace + "/" + pod.Labels[resources.LabelCluster]
		alone := len(resources.InitialMembers(pod)) == 1 && resources.MayFill(pod)
		if err := k.etcd.Start(cluster, pod.Name, address(at.ip), initial, alone); err != nil {
			return err
		}
		at.started = true
	}
	status := runningStatus(pod, at.ip, !prepared)
	if pod.Status.PodIP == at.ip && pod.Status.ContainerStatuses[0].Ready == !prepared && pod.Status.ObservedGeneration == pod.Generation {
		return nil
	}
	pod = pod.DeepCopy()
	pod.Status = status
	_, err = k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func runningStatus(pod *corev1.Pod, ip string, ready bool) corev1.PodStatus {
	isReady := corev1.ConditionFalse
	if ready {
		isReady = corev1.ConditionTrue
	}
	now := metav1.Now()
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, ObservedGeneration: pod.Generation, StartTime: &now,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: isReady, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: resources.ContainerName, Image: pod.Spec.Containers[0].Image, ContainerID: "none://" + string(pod.UID), Ready: ready, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
}
