// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// largeQuota continues the spec of a cluster that holds the largest database.
	largeQuota = "\n  etcd: {quotaBackendBytes: 8Gi}"
	// largeLimit is after how long something that moves all of the data counts as never.
	largeLimit = 10 * time.Minute
	// maxRestores of one size: each writes the data four times.
	maxRestores = 3

	backupVolume = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: backups}
spec:
  storageClassName: local-path
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 64Mi}}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: main}
spec:
  etcdCluster: {name: main}
  storageType: PersistentVolumeClaim
  persistentVolumeClaim: {claimName: backups}
`
)

// restore measures how long an EtcdRestore needs to bring a cluster of three back from a
// backup on a volume, after the cluster that was backed up was deleted.
func (b *bench) restore(ctx context.Context) error {
	for _, megabytes := range b.sizes {
		err := b.within(ctx, func(ctx context.Context, namespace string) error {
			var data harness.Data
			err := b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) (err error) {
				data, err = s.backUp(ctx, megabytes)
				return err
			})
			for i := 0; i < min(b.repetitions, maxRestores) && err == nil; i++ {
				err = b.withSubject(ctx, namespace, fmt.Sprintf("again-%d", i), func(ctx context.Context, s *subject) error {
					return s.restoreInto(ctx, megabytes, data)
				})
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%d MiB: %w", megabytes, err)
		}
	}
	return nil
}

// backUp fills a cluster, backs it up and deletes it.
func (s *subject) backUp(ctx context.Context, megabytes int) (harness.Data, error) {
	data, err := s.start(ctx, 1, etcdVersion, largeQuota)
	if err != nil {
		return nil, err
	}
	s.say("writing %d MiB", megabytes)
	if err := s.grow(ctx, megabytes); err != nil {
		return nil, err
	}
	if err := s.kubectl(ctx, backupVolume, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, largeLimit)
	defer cancel()
	if err := s.awaitBackup(limited, s.name); err != nil {
		return nil, err
	}
	return data, s.drop(ctx)
}

// drop deletes the cluster, and waits until its disk and processor are free.
func (s *subject) drop(ctx context.Context) error {
	return errors.Join(
		s.kubectl(ctx, "", "delete", "etcdcluster", s.name),
		s.kubectl(ctx, "", "wait", "pods", "-l", "etcd_cluster="+s.name, "--for=delete", "--timeout="+limit.String()))
}

// restoreInto measures one restore into a new cluster.
func (s *subject) restoreInto(ctx context.Context, megabytes int, data harness.Data) error {
	raw, err := writeToDisk(megabytes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, largeLimit)
	defer cancel()
	from := time.Now()
	err = s.kubectl(ctx, fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: %s}
spec:
  backup: {name: main}
  etcdCluster: {name: %s}
  clusterTemplate:
    spec:
      size: 3
      version: %q
      etcd: {quotaBackendBytes: 8Gi}
`, s.name, s.name, etcdVersion), "apply", "-f", "-")
	if err != nil {
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
	if err := s.members.Holds(ctx, data); err != nil {
		return err
	}
	at := fmt.Sprintf(" of %d MiB", megabytes)
	s.say("restore%s: first write %.2f s, voters %.2f s; the bytes alone to the disk %.2f s", at, served.Seconds(), voters.Seconds(), raw.Seconds())
	s.table.addTime("restore"+at+": first write", served)
	s.table.addTime("restore"+at+": 3 voters", voters)
	s.table.addTime("writing"+at+" to the disk, synced", raw)
	return errors.Join(s.kubectl(ctx, "", "delete", "etcdrestore", s.name), s.drop(ctx))
}

// writeToDisk writes as many bytes to a file, with a sync at the end.
func writeToDisk(megabytes int) (took time.Duration, err error) {
	file, err := os.CreateTemp("", "etcd-operator-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block) // it never fails
	from := time.Now()
	for range megabytes {
		if _, err := file.Write(block); err != nil {
			return 0, err
		}
	}
	err = file.Sync()
	return time.Since(from), err
}
