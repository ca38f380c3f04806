// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	dataKeys  = 1000
	dataBytes = 256
)

// volumes continues the spec of a cluster whose members have a volume each.
const volumes = `
  pod:
    persistentVolumeClaimSpec:
      storageClassName: local-path
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 64Mi}}`

func manifest(name string, size int, version, more string) string {
	return fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: %s}
spec:
  size: %d
  version: %q%s
---
`, name, size, version, more)
}

// subject is one cluster that is measured, in a namespace of its own.
type subject struct {
	*bench
	namespace, name string
	members         *harness.Members
}

// within makes a namespace, runs work in it and removes it.
func (b *bench) within(ctx context.Context, work func(ctx context.Context, namespace string) error) (err error) {
	created, err := b.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	defer func() {
		// What was measured is over, also if it was interrupted. The next repetition must not
		// begin before the namespace is empty.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err = errors.Join(err, b.clear(ctx, created.Name))
	}()
	return work(ctx, created.Name)
}

// clear deletes a namespace. The namespace alone would do; Kubernetes is quicker when its
// pods are deleted already, because it waits for them in coarse steps.
func (b *bench) clear(ctx context.Context, namespace string) error {
	for _, args := range [][]string{
		{"delete", "etcdclusters", "--all", "-n", namespace},
		{"delete", "pods", "--all", "-n", namespace, "--wait"},
		{"delete", "namespace", namespace, "--wait"},
	} {
		if _, err := b.Kubectl(ctx, harness.Command{Args: args}); err != nil {
			return err
		}
	}
	return nil
}

// withSubject runs work on the cluster called name, which need not exist yet.
func (b *bench) withSubject(ctx context.Context, namespace, name string, work func(context.Context, *subject) error) error {
	members, err := b.Members(ctx, namespace, name)
	if err != nil {
		return err
	}
	s := &subject{bench: b, namespace: namespace, name: name, members: members}
	return errors.Join(work(ctx, s), members.Close())
}

// kubectl runs kubectl in the namespace of the subject.
func (s *subject) kubectl(ctx context.Context, stdin string, args ...string) error {
	_, err := s.Kubectl(ctx, harness.Command{Args: append([]string{"-n", s.namespace}, args...), Stdin: stdin})
	return err
}

// start makes the cluster and waits until it is as declared, with data in it.
func (s *subject) start(ctx context.Context, size int, version, more string) (harness.Data, error) {
	if err := s.kubectl(ctx, manifest(s.name, size, version, more), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	if err := s.settle(ctx, size); err != nil {
		return nil, err
	}
	return s.members.Fill(ctx, dataKeys, dataBytes)
}

// settle waits until n members are ready and the controller has nothing left to do,
// so that a repetition does not begin in the tail of the one before.
func (s *subject) settle(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	view, err := s.Cluster(ctx, s.namespace, s.name)
	if err != nil {
		return err
	}
	defer view.Close()
	err = view.Await(ctx, func(list []*v1beta2.EtcdCluster) bool {
		return len(list) == 1 && isAtRest(list[0], n)
	})
	if err != nil {
		return fmt.Errorf("cluster %s does not settle at %d members: %w", s.name, n, err)
	}
	return s.members.Pods.Await(ctx, harness.AllReady(n))
}

func isAtRest(c *v1beta2.EtcdCluster, n int) bool {
	if c.Status.ObservedGeneration != c.Generation || len(c.Status.Members.Ready) != n || int(c.Status.Replicas) != n {
		return false
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1beta2.ClusterConditionProgressing {
			return condition.Status == corev1.ConditionFalse
		}
	}
	return false
}

// timed runs a user's command and measures from just before it until there are n
// voters, and until there are n ready pods and no others. A pod that is lost counts
// for neither.
func (s *subject) timed(ctx context.Context, n int, lost []types.UID, command func(context.Context) error) (voters, ready time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	from := time.Now()
	if err := command(ctx); err != nil {
		return 0, 0, err
	}
	group.Go(func() error {
		err := s.members.AwaitVoters(groupCtx, n, lost...)
		voters = time.Since(from)
		return err
	})
	group.Go(func() error {
		err := s.members.Pods.Await(groupCtx, func(pods []*corev1.Pod) bool {
			for _, p := range pods {
				for _, uid := range lost {
					if p.UID == uid {
						return false
					}
				}
			}
			return harness.AllReady(n)(pods)
		})
		ready = time.Since(from)
		return err
	})
	return voters, ready, group.Wait()
}
