// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
	"github.com/etcd-operator/etcd-operator/pkg/controller/kubeadapter"
	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	"github.com/etcd-operator/etcd-operator/pkg/controller/storagecert"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// eventLimits leave room for the events of a cluster that is scaled or rolled several
// times in a row; the defaults would drop them after the first 25.
var eventLimits = record.CorrelatorOptions{BurstSize: 100, QPS: 1. / 15}

const userAgent = "etcd-operator-controller"

// clients talk to the API with one shared limit.
type clients struct {
	kubernetes kubernetes.Interface
	etcd       versioned.Interface
	// dynamic is for what others define.
	dynamic dynamic.Interface
	// metadata is for objects whose names are all that matters.
	metadata metadata.Interface
	lease    kubernetes.Interface
	// clock is what objects are compared with.
	clock *apiclock.Clock
	// writes bounds what all loops write for a namespace.
	writes *share.Buckets
}

// adapter returns the live API.
func (c clients) adapter() kubeadapter.Client {
	return kubeadapter.Client{Kubernetes: c.kubernetes, Etcd: c.etcd, Writes: c.writes}
}

// forJobs returns the live API of a reconciler whose objects have Jobs with these labels.
func (c clients) forJobs(labels kubeadapter.LabelsOf) kubeadapter.JobClient {
	return kubeadapter.JobClient{Client: c.adapter(), Labels: labels}
}

// Run runs the controller until ctx ends. It acts only while it holds the lease.
func Run(ctx context.Context, o *Options) error {
	c, err := newClients(o)
	if err != nil {
		return err
	}
	metrics.Register()
	var health sync.WaitGroup
	defer health.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.StorageService != "" {
		// Before everything that needs the API servers: they start after their storage.
		storage := storagecert.NewManager(storagecert.Config{
			Namespace: o.podNamespace, Service: o.StorageService, EmbeddedService: o.StorageEmbeddedService,
		}, c.kubernetes, clock.RealClock{})
		health.Go(func() { storage.Run(ctx) })
	}
	if o.StorageBackupPVC != "" {
		health.Go(func() { ensureStorageBackup(ctx, c.kubernetes, c.etcd, o, clock.RealClock{}) })
	}
	plain := limited(maxScrapes, legacyregistry.Handler())
	if o.SecureMetricsAddress != "" {
		secure, err := newSecureMetrics(ctx, o, c.kubernetes, plain)
		if err != nil {
			return err
		}
		health.Go(func() { secure.serve(ctx) })
		plain = nil
	}
	endpoint, err := newEndpoint(ctx, o.ListenAddress, plain)
	if err != nil {
		return err
	}
	health.Go(func() { endpoint.serve(ctx) })

	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(eventLimits))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.kubernetes.CoreV1().Events("")})
	events, err := eventScheme()
	if err != nil {
		return err
	}
	recorder := broadcaster.NewRecorder(events, corev1.EventSource{Component: "etcd-operator"})
	image, err := agentImage(ctx, c.kubernetes.CoreV1(), o)
	if err != nil {
		return err
	}
	installed := *o
	installed.AgentImage = image
	klog.FromContext(ctx).Info("Backups and restores run the agent of this image", "image", image)
	return runShard(ctx, &installed, c, recorder, func() { endpoint.ready.Store(true) })
}

// runShard fills the caches, calls filled, and then waits for the lease: a process that
// takes over knows the clusters already.
func runShard(ctx context.Context, o *Options, c clients, recorder record.EventRecorder, filled func()) error {
	ctx, cancel := context.WithCancel(ctx)
	s, err := newShard(o, c, recorder)
	if err != nil {
		cancel()
		return err
	}
	defer s.close()
	defer cancel() // before the caches are waited for
	if err := s.fill(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the process ends before it has begun
		}
		return err
	}
	filled()
	return lead(ctx, o, c, s.run)
}

func newClients(o *Options) (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return clients{}, fmt.Errorf("find the API (pass --kubeconfig outside a cluster): %w", err)
	}
	config = rest.AddUserAgent(config, userAgent)
	config.QPS, config.Burst = o.QPS, o.Burst

	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	// The clock follows the kube-apiserver, which the lease reaches every few seconds, and not the API
	// server of EtcdClusters.
	now := apiclock.New(clock.RealClock{})
	timed := rest.CopyConfig(protobuf)
	timed.Wrap(now.Transport)
	kube, err := kubernetes.NewForConfig(timed)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	etcd, err := versioned.NewForConfig(protobuf)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	// The lease has a client of its own, so that a burst of work cannot keep it from
	// being renewed.
	forLease := rest.CopyConfig(timed)
	forLease.Timeout = o.RenewDeadline / 2
	lease, err := kubernetes.NewForConfig(forLease)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	return clients{kubernetes: kube, etcd: etcd, dynamic: others, metadata: names, lease: lease, clock: now,
		writes: kubeadapter.NewWrites(clock.RealClock{})}, nil
}

// eventScheme knows the kinds that events are about.
func eventScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		return nil, err
	}
	if err := v1beta2.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, nil
}
