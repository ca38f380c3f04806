// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// writeInterval is the pace of the writer during an upgrade.
const writeInterval = 10 * time.Millisecond

// lost measures how long the loss of a pod is felt, without and with a volume.
func (b *bench) lost(ctx context.Context) error {
	for _, kind := range []struct{ name, more string }{
		{"pod lost with its data", ""},
		{"pod lost, data on a volume", volumes},
	} {
		err := b.within(ctx, func(ctx context.Context, namespace string) error {
			return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
				data, err := s.start(ctx, 3, etcdVersion, kind.more)
				for i := 0; i < b.repetitions && err == nil; i++ {
					err = s.loseOne(ctx, kind.name, i, data)
				}
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

// loseOne deletes a pod by force. It takes the pods in turn, that of the leader included.
func (s *subject) loseOne(ctx context.Context, name string, i int, data harness.Data) error {
	live := s.members.Live()
	target := live[i%len(live)]
	voters, ready, err := s.timed(ctx, 3, []types.UID{target.UID}, func(ctx context.Context) error {
		return s.kubectl(ctx, "", "delete", "pod", target.Name, "--force", "--grace-period=0", "--wait=false")
	})
	if err != nil {
		return err
	}
	s.say("%s %d: voters %.2f s, ready %.2f s", name, i+1, voters.Seconds(), ready.Seconds())
	s.table.addTime(name+": voters", voters)
	s.table.addTime(name+": ready", ready)
	return errors.Join(s.settle(ctx, 3), s.members.Holds(ctx, data))
}

// scale measures three members to five and back.
func (b *bench) scale(ctx context.Context) error {
	return b.within(ctx, func(ctx context.Context, namespace string) error {
		return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
			data, err := s.start(ctx, 3, etcdVersion, "")
			for i := 0; i < b.repetitions && err == nil; i++ {
				err = errors.Join(s.resize(ctx, "3 to 5 members", 5), s.resize(ctx, "5 to 3 members", 3), s.members.Holds(ctx, data))
			}
			return err
		})
	})
}

func (s *subject) resize(ctx context.Context, name string, size int) error {
	voters, ready, err := s.timed(ctx, size, nil, func(ctx context.Context) error {
		return s.kubectl(ctx, "", "scale", "etcdcluster/"+s.name, fmt.Sprintf("--replicas=%d", size))
	})
	if err != nil {
		return err
	}
	s.say("%s: voters %.2f s, ready %.2f s", name, voters.Seconds(), ready.Seconds())
	s.table.addTime(name+": voters", voters)
	s.table.addTime(name+": ready, no other pods", ready)
	return s.settle(ctx, size)
}

// upgrade measures a change of the patch version while a client writes.
func (b *bench) upgrade(ctx context.Context) error {
	for range b.repetitions {
		err := b.within(ctx, func(ctx context.Context, namespace string) error {
			return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
				if _, err := s.start(ctx, 3, previousVersion, ""); err != nil {
					return err
				}
				return s.upgradeUnderLoad(ctx)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) upgradeUnderLoad(ctx context.Context) error {
	const name = "patch upgrade of 3"
	w, err := s.members.Write(ctx, writeInterval)
	if err != nil {
		return err
	}
	from := time.Now()
	patch := `{"spec":{"version":"` + etcdVersion + `"}}`
	if err := s.kubectl(ctx, "", "patch", "etcdcluster", s.name, "--type=merge", "-p", patch); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = wait.PollUntilContextCancel(limited, harness.PollInterval, true, func(ctx context.Context) (bool, error) {
		responses, err := s.members.Ask(ctx)
		for _, a := range responses {
			if a.Version != etcdVersion {
				return false, nil
			}
		}
		return err == nil && len(responses) == 3 && s.members.Voters(ctx, 3) == nil, nil
	})
	took := time.Since(from)
	report, stopErr := w.Stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	s.say("%s: %.2f s, %v", name, took.Seconds(), report)
	s.table.addTime(name+": all at the new version", took)
	s.table.add(name+": failed writes", "of 100/s", float64(report.Failed))
	s.table.add(name+": longest gap", "ms", float64(report.LongestGap.Milliseconds()))
	s.table.add(name+": p99 of writes", "ms", float64(report.Quantile(0.99).Microseconds())/1000)
	return s.members.Kept(ctx, report)
}
