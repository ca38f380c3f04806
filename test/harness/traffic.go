// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// trafficTimeout bounds one request with all that the client library does for it.
const trafficTimeout = 90 * time.Second

// TrafficOptions say how much a Traffic asks for.
type TrafficOptions struct {
	Namespace string
	// PerSecond is how many requests are begun in a second.
	PerSecond int
	// Workers limits how many requests are under way; each has an object of its own.
	Workers int
	// Watchers watch all objects of the namespace.
	Watchers int
}

// Failure is a request that failed for the client, after all retries of the client library.
type Failure struct {
	Verb  string
	Begun time.Time
	Took  time.Duration
	Err   error
}

func (f Failure) String() string {
	return fmt.Sprintf("%s at %s after %s: %v", f.Verb, f.Begun.Format("15:04:05.000"), f.Took.Round(time.Millisecond), f.Err)
}

// acknowledged is a write that the API has acknowledged.
type acknowledged struct {
	uid     types.UID
	version string
}

// Traffic asks the API of the operator for objects that no program acts on, at a constant rate,
// and keeps the outcomes.
type Traffic struct {
	options TrafficOptions
	client  versioned.Interface
	pace    flowcontrol.RateLimiter
	begun   time.Time

	mu       sync.Mutex
	requests int
	slowest  time.Duration
	retries  map[int]int
	failures []Failure
	written  []acknowledged

	watchers []*history
	stop     context.CancelFunc
	wait     sync.WaitGroup
}

// StartTraffic begins. Each worker creates, reads, updates and deletes its object again and again.
func (e *Environment) StartTraffic(ctx context.Context, options TrafficOptions) (*Traffic, error) {
	t := &Traffic{options: options, retries: map[int]int{}, pace: flowcontrol.NewTokenBucketRateLimiter(float32(options.PerSecond), 1), begun: time.Now()}
	config := rest.CopyConfig(e.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countRetries{next: next, traffic: t} })
	var err error
	if t.client, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	list, err := t.client.EtcdV1beta2().EtcdBackups(options.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list before the traffic: %w", err)
	}
	for range options.Watchers {
		h, err := watchHistory(ctx, t.client, options.Namespace, list.ResourceVersion)
		if err != nil {
			return nil, err
		}
		t.watchers = append(t.watchers, h)
	}
	ctx, t.stop = context.WithCancel(ctx)
	for i := range options.Workers {
		t.wait.Go(func() { t.work(ctx, fmt.Sprintf("traffic-%d", i)) })
	}
	return t, nil
}

// countRetries counts the responses after which the client library sends the request again.
type countRetries struct {
	next    http.RoundTripper
	traffic *Traffic
}

func (c countRetries) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil && response.Header.Get("Retry-After") != "" {
		c.traffic.mu.Lock()
		defer c.traffic.mu.Unlock()
		c.traffic.retries[response.StatusCode]++
	}
	return response, err
}

// trafficObject is an EtcdBackup that is suspended, and whose cluster does not exist.
func trafficObject(name string) *v1beta2.EtcdBackup {
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "none"}, StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "none", Path: "none"}},
			BackupPolicy: &v1beta2.BackupPolicy{Schedule: "0 0 1 1 *", Suspend: true},
		},
	}
}

// work uses one object until the context ends. A name is used once: after a request that failed
// it is not known whether its object exists.
func (t *Traffic) work(ctx context.Context, prefix string) {
	backups := t.client.EtcdV1beta2().EtcdBackups(t.options.Namespace)
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d", prefix, n)
		object, ok := t.request(ctx, "create", func(ctx context.Context) (*v1beta2.EtcdBackup, error) {
			made, err := backups.Create(ctx, trafficObject(name), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				// The client library has sent the request again, and the first one had succeeded.
				return backups.Get(ctx, name, metav1.GetOptions{})
			}
			return made, err
		})
		for i := 0; ok && i < 4; i++ {
			object, ok = t.request(ctx, "get", func(ctx context.Context) (*v1beta2.EtcdBackup, error) {
				return backups.Get(ctx, name, metav1.GetOptions{})
			})
			if !ok {
				break
			}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/number":"%d"}}}`, i)
			object, ok = t.request(ctx, "update", func(ctx context.Context) (*v1beta2.EtcdBackup, error) {
				if i%2 == 0 {
					return backups.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
				}
				changed := object.DeepCopy()
				changed.Annotations = map[string]string{"example.com/number": fmt.Sprint(i)}
				changed.ResourceVersion = "" // the controller may have written the status
				return backups.Update(ctx, changed, metav1.UpdateOptions{})
			})
		}
		if ok {
			t.request(ctx, "delete", func(ctx context.Context) (*v1beta2.EtcdBackup, error) {
				err := backups.Delete(ctx, name, metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) {
					return nil, nil // as after a creation
				}
				return nil, err
			})
		}
	}
}

// request sends one request when it is its turn, and returns whether it succeeded.
func (t *Traffic) request(ctx context.Context, verb string, send func(context.Context) (*v1beta2.EtcdBackup, error)) (*v1beta2.EtcdBackup, bool) {
	if t.pace.Wait(ctx) != nil {
		return nil, false
	}
	// The end of the traffic does not interrupt a request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trafficTimeout)
	defer cancel()
	begun := time.Now()
	object, err := send(ctx)
	took := time.Since(begun)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.slowest = max(t.slowest, took)
	if err != nil {
		t.failures = append(t.failures, Failure{Verb: verb, Begun: begun, Took: took, Err: err})
		return nil, false
	}
	if object != nil && verb != "get" {
		t.written = append(t.written, acknowledged{uid: object.UID, version: object.ResourceVersion})
	}
	return object, true
}

// Phase is the outcome of the requests since the last call of Phase.
type Phase struct {
	Requests int
	Took     time.Duration
	Slowest  time.Duration
	// Retries counts responses that told the client library to try again, by status code.
	Retries  map[int]int
	Failures []Failure
}

func (p Phase) String() string {
	return fmt.Sprintf("%d requests in %s (%.0f/s), %d failed, slowest %s, sent again after status %v", p.Requests, p.Took.Round(time.Second),
		float64(p.Requests)/p.Took.Seconds(), len(p.Failures), p.Slowest.Round(time.Millisecond), p.Retries)
}

// Phase returns the outcome of the requests since the last call, and begins another phase.
func (t *Traffic) Phase() Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Phase{Requests: t.requests, Took: time.Since(t.begun), Slowest: t.slowest, Retries: t.retries, Failures: t.failures}
	t.requests, t.begun, t.slowest, t.retries, t.failures = 0, time.Now(), 0, map[int]int{}, nil
	return p
}

// Stop ends the requests, waits until every watcher has seen all acknowledged writes, and returns
// what is wrong with the histories of the watchers.
func (t *Traffic) Stop(ctx context.Context) (events int, problems []string) {
	backups := t.client.EtcdV1beta2().EtcdBackups(t.options.Namespace)
	t.stopWorkers()
	if len(t.watchers) == 0 {
		return 0, nil
	}
	// Every watcher has seen everything before this object when it has seen its creation.
	last, err := backups.Create(ctx, trafficObject("last"), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, []string{fmt.Sprintf("create the last object: %v", err)}
	}
	for i, w := range t.watchers {
		if err := w.await(ctx, last.UID); err != nil {
			problems = append(problems, fmt.Sprintf("watcher %d did not see the last object: %v", i, err))
		}
		w.close()
	}
	first := t.watchers[0].list()
	for i, w := range t.watchers {
		problems = append(problems, w.compare(fmt.Sprintf("watcher %d", i), t.written, first)...)
	}
	return len(first), problems
}

func (t *Traffic) stopWorkers() {
	t.stop()
	t.wait.Wait()
}
