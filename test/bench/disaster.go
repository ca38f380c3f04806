// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// allLost measures how long a cluster with volumes is away when all its pods are
// deleted at once.
func (b *bench) allLost(ctx context.Context) error {
	return b.within(ctx, func(ctx context.Context, namespace string) error {
		return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
			data, err := s.start(ctx, 3, etcdVersion, volumes)
			for i := 0; i < b.repetitions && err == nil; i++ {
				err = s.loseAll(ctx, i, data)
			}
			return err
		})
	})
}

func (s *subject) loseAll(ctx context.Context, i int, data harness.Data) error {
	const name = "all pods deleted, data on volumes"
	var lost []types.UID
	for _, pod := range s.members.Live() {
		lost = append(lost, pod.UID)
	}
	var served time.Duration
	voters, ready, err := s.timed(ctx, 3, lost, func(ctx context.Context) error {
		from := time.Now()
		err := s.kubectl(ctx, "", "delete", "pods", "-l", "etcd_cluster="+s.name, "--force", "--grace-period=0", "--wait=false")
		if err == nil {
			err = s.awaitWrite(ctx, lost...)
		}
		served = time.Since(from)
		return err
	})
	if err != nil {
		return err
	}
	s.say("%s %d: first write %.2f s, voters %.2f s, ready %.2f s", name, i+1, served.Seconds(), voters.Seconds(), ready.Seconds())
	s.table.addTime(name+": first write", served)
	s.table.addTime(name+": voters", voters)
	s.table.addTime(name+": ready", ready)
	return errors.Join(s.settle(ctx, 3), s.members.Holds(ctx, data))
}

// quorumLost measures how long the status takes to report the loss of two of three members
// with their data, and the time from the request to recover until writes are served.
func (b *bench) quorumLost(ctx context.Context) error {
	for i := range b.repetitions {
		err := b.within(ctx, func(ctx context.Context, namespace string) error {
			return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
				if _, err := s.start(ctx, 3, etcdVersion, ""); err != nil {
					return err
				}
				said, err := s.loseMajority(ctx)
				if err != nil {
					return err
				}
				s.say("majority lost %d: said after %.2f s", i+1, said.Seconds())
				s.table.addTime("majority lost: the status reports QuorumLost", said)
				return s.recover(ctx)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) loseMajority(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	view, err := s.Cluster(ctx, s.namespace, s.name)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	live := s.members.Live()
	for _, pod := range live[:2] {
		// Both at once: one that is missed a moment before the other is replaced with the
		// vote of that other one.
		if err := harness.Signal(pod, "etcd", syscall.SIGSTOP); err != nil {
			return 0, err
		}
	}
	from := time.Now()
	if err := s.kubectl(ctx, "", "delete", "pod", live[0].Name, live[1].Name, "--force", "--grace-period=0", "--wait=false"); err != nil {
		return 0, err
	}
	err = view.Await(ctx, func(list []*v1beta2.EtcdCluster) bool {
		return len(list) == 1 && is(list[0], v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) &&
			is(list[0], v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	})
	if err != nil {
		return 0, fmt.Errorf("the lost quorum is not said: %w", err)
	}
	said := time.Since(from)
	err = view.Await(ctx, func(list []*v1beta2.EtcdCluster) bool {
		return len(list) == 1 && slices.ContainsFunc(list[0].Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.RaftIndex > 0 })
	})
	if err != nil {
		return 0, fmt.Errorf("the survivor is not said: %w", err)
	}
	return said, nil
}

func is(c *v1beta2.EtcdCluster, kind v1beta2.ClusterConditionType, status corev1.ConditionStatus) bool {
	for _, condition := range c.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == status
		}
	}
	return false
}

// recover asks for the recovery and waits for a write and for three members. What
// the one survivor held must be there again.
func (s *subject) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	path := fmt.Sprintf("/apis/%s/namespaces/%s/etcdclusters/%s/recover", v1beta2.SchemeGroupVersion, s.namespace, s.name)
	from := time.Now()
	if err := s.kubectl(ctx, "{}", "create", "--raw", path, "-f", "-"); err != nil {
		return err
	}
	if err := s.awaitWrite(ctx); err != nil {
		return err
	}
	served := time.Since(from)
	if err := s.members.AwaitVoters(ctx, 3); err != nil {
		return err
	}
	voters := time.Since(from)
	s.say("recovered: first write %.2f s, voters %.2f s", served.Seconds(), voters.Seconds())
	s.table.addTime("recover: first write", served)
	s.table.addTime("recover: 3 voters", voters)
	return s.settle(ctx, 3)
}

// writeTimeout bounds one write: a member without a quorum does not reject it, but waits.
const writeTimeout = 250 * time.Millisecond

// awaitWrite waits until any member takes a write whose pod is not one of those lost.
func (s *subject) awaitWrite(ctx context.Context, lost ...types.UID) error {
	return wait.PollUntilContextCancel(ctx, harness.PollInterval, true, func(ctx context.Context) (bool, error) {
		for _, pod := range s.members.Live() {
			if slices.Contains(lost, pod.UID) {
				continue
			}
			client, err := s.members.Client(pod)
			if err != nil {
				continue // it has no address yet
			}
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			_, err = client.Put(ctx, "after", "recovery")
			cancel()
			if err == nil {
				return true, nil
			}
		}
		return false, nil
	})
}

// health measures the response of /health while one member's node is cut off.
func (b *bench) health(ctx context.Context) error {
	return b.within(ctx, func(ctx context.Context, namespace string) error {
		return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) (err error) {
			if _, err := s.start(ctx, 3, etcdVersion, volumes); err != nil {
				return err
			}
			if err := s.askHealth(ctx, "/health, all members respond"); err != nil {
				return err
			}
			node, err := s.nodeToCut(ctx)
			if err != nil {
				return err
			}
			if _, err := s.LocalTool(ctx, "node", "partition", node); err != nil {
				return err
			}
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
				defer cancel()
				_, healErr := s.LocalTool(ctx, "node", "heal", node)
				err = errors.Join(err, healErr)
			}()
			return s.askHealth(ctx, "/health, one member black-holed")
		})
	})
}

func (s *subject) askHealth(ctx context.Context, name string) error {
	path := fmt.Sprintf("/apis/%s/namespaces/%s/etcdclusters/%s/health", v1beta2.SchemeGroupVersion, s.namespace, s.name)
	client := s.Etcd.EtcdV1beta2().RESTClient()
	for range s.repetitions {
		from := time.Now()
		if err := client.Get().AbsPath(path).Do(ctx).Error(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.table.add(name, "ms", float64(time.Since(from).Microseconds())/1000)
	}
	return nil
}

// nodeToCut returns the node of a member on which the API server does not run.
func (s *subject) nodeToCut(ctx context.Context) (string, error) {
	servers, err := s.ProgramPods(ctx, harness.APIServer)
	if err != nil {
		return "", fmt.Errorf("find the API server: %w", err)
	}
	defer servers.Close()
	taken := map[string]bool{}
	for _, pod := range servers.List() {
		taken[pod.Spec.NodeName] = true
	}
	for _, pod := range s.members.Live() {
		if !taken[pod.Spec.NodeName] {
			return pod.Spec.NodeName, nil
		}
	}
	return "", errors.New("every member runs beside the API server: bring the local Kubernetes up with three nodes")
}
