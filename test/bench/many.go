// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const burstClusters = 30

// startWithin is what each of many clusters adds to the time in which all must run.
const startWithin = 5 * time.Second

// small continues the spec of a cluster so that many fit on a node.
const small = `
  pod:
    resources: {requests: {cpu: 10m, memory: 16Mi}}`

// manyPods returns the manifests of as many bare pods, the floor of a burst.
func manyPods(namespace string, n int) (string, error) {
	policy := &v1beta2.PodPolicy{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}}
	var text strings.Builder
	for i := range n {
		one, err := floor(namespace, fmt.Sprintf("c%d", i), 1, policy)
		if err != nil {
			return "", err
		}
		text.WriteString(one)
	}
	return text.String(), nil
}

func manyManifests(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(manifest(fmt.Sprintf("c%d", i), 1, etcdVersion, small))
	}
	return text.String()
}

// burst measures many clusters of one member in one command, and in turns with it the
// floor: the same pods without any controller.
func (b *bench) burst(ctx context.Context) error {
	before, err := b.processor(ctx, harness.Controller)
	if err != nil {
		return err
	}
	for range max(1, b.repetitions/3) {
		for _, bare := range []bool{true, false} {
			err := b.within(ctx, func(ctx context.Context, namespace string) error {
				pods, err := b.Pods(ctx, namespace, "app=etcd")
				if err != nil {
					return err
				}
				name, text := fmt.Sprintf("%d clusters of 1 at once", burstClusters), manyManifests(burstClusters)
				if bare {
					name = fmt.Sprintf("floor: %d bare pods", burstClusters)
					if text, err = manyPods(namespace, burstClusters); err != nil {
						return err
					}
				}
				// No cluster has this name: the requests go to the pods of all clusters.
				all := harness.MembersOf(pods)
				return errors.Join(b.burstOnce(ctx, namespace, name, text, all), all.Close())
			})
			if err != nil {
				return err
			}
		}
	}
	after, err := b.processor(ctx, harness.Controller)
	if err != nil {
		return err
	}
	b.table.add("a controller's processor time for a burst and its end", "s", (after-before)/float64(max(1, b.repetitions/3)))
	return nil
}

func (b *bench) burstOnce(ctx context.Context, namespace, name, text string, all *harness.Members) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	from := time.Now()
	_, err := b.Kubectl(ctx, harness.Command{Args: []string{"-n", namespace, "apply", "-f", "-"}, Stdin: text})
	if err != nil {
		return err
	}
	applied := time.Since(from)
	var serve, ready time.Duration
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := wait.PollUntilContextCancel(groupCtx, 5*harness.PollInterval, true, func(ctx context.Context) (bool, error) {
			return len(all.Live()) == burstClusters && all.Reads(ctx) == nil, nil
		})
		serve = time.Since(from)
		return err
	})
	group.Go(func() error {
		err := all.Pods.Await(groupCtx, harness.AllReady(burstClusters))
		ready = time.Since(from)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	b.say("%s: all serve %.2f s, all ready %.2f s; kubectl alone %.2f s", name, serve.Seconds(), ready.Seconds(), applied.Seconds())
	b.table.addTime(name+": kubectl apply alone", applied)
	b.table.addTime(name+": all serve a linearizable read", serve)
	b.table.addTime(name+": all ready", ready)
	return nil
}

// atRest measures what many clusters cost while nothing changes.
func (b *bench) atRest(ctx context.Context) error {
	return b.within(ctx, func(ctx context.Context, namespace string) error {
		_, err := b.Kubectl(ctx, harness.Command{Args: []string{"-n", namespace, "apply", "-f", "-"}, Stdin: manyManifests(b.clusters)})
		if err != nil {
			return err
		}
		if err := b.awaitAllAtRest(ctx, namespace); err != nil {
			return err
		}
		return b.watchIdle(ctx)
	})
}

func (b *bench) awaitAllAtRest(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, max(limit, time.Duration(b.clusters)*startWithin))
	defer cancel()
	clusters, err := b.Clusters(ctx, namespace)
	if err != nil {
		return err
	}
	defer clusters.Close()
	return clusters.Await(ctx, func(list []*v1beta2.EtcdCluster) bool {
		for _, c := range list {
			if !isAtRest(c, 1) {
				return false
			}
		}
		return len(list) == b.clusters
	})
}

// program returns the one pod of an installed program.
func (b *bench) program(ctx context.Context, name string) (*corev1.Pod, error) {
	pods, err := b.ProgramPods(ctx, name)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	list := pods.List()
	if len(list) != 1 {
		return nil, fmt.Errorf("%s has %d pods, not one", name, len(list))
	}
	return list[0], nil
}

func (b *bench) process(ctx context.Context, name string) (int, error) {
	pod, err := b.program(ctx, name)
	if err != nil {
		return 0, err
	}
	return harness.ContainerProcess(pod, pod.Spec.Containers[0].Name)
}

func (b *bench) processor(ctx context.Context, name string) (float64, error) {
	pid, err := b.process(ctx, name)
	if err != nil {
		return 0, err
	}
	return harness.ProcessorSeconds(pid)
}
