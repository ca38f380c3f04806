// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// etcdShare continues the spec of a cluster whose members have a PVC on the
	// processor, as members in production have: without one a Job, which has
	// a small one, goes first.
	etcdShare = "\n  pod: {resources: {requests: {cpu: 300m, memory: 128Mi}}}"

	// storePod is an S3 server whose data is in memory: a store does not share a disk with
	// the members.
	storePod = `apiVersion: v1
kind: Secret
metadata: {name: store}
stringData:
  key: ` + objectsKey + `
  config: "[default]\nregion = us-east-1\n"
  credentials: "[default]\naws_access_key_id = ` + objectsUser + `\naws_secret_access_key = ` + objectsKey + `\n"
---
apiVersion: v1
kind: Pod
metadata:
  name: store
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: versitygw
    image: docker.io/versity/versitygw:v1.8.0
    command: [/versitygw, -q, --port, ":7070", posix, --sidecar, /data/meta, /data/objects]
    env:
    - {name: ROOT_ACCESS_KEY, value: ` + objectsUser + `}
    - {name: ROOT_SECRET_KEY, valueFrom: {secretKeyRef: {name: store, key: key}}}
    readinessProbe: {tcpSocket: {port: 7070}, periodSeconds: 1}
    resources: {requests: {cpu: 10m, memory: 32Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /data/objects}, {name: meta, mountPath: /data/meta}]
  volumes: [{name: data, emptyDir: {medium: Memory}}, {name: meta, emptyDir: {medium: Memory}}]
`
)

// foreground measures what EtcdBackups do to writes, and beside it what only reading
// the stream does, which no backup can do without.
func (s *subject) foreground(ctx context.Context, at string) error {
	endpoint, err := s.storeInside(ctx)
	if err != nil {
		return err
	}
	without, err := s.writes(ctx, func(ctx context.Context) error { return rest(ctx, backupSpell) })
	if err != nil {
		return err
	}
	s.say("writes%s without backups: %v", at, without)
	s.table.add("p99 of a write"+at, "ms", milliseconds(without.Quantile(0.99)))
	made := 0
	for _, kind := range []struct {
		name string
		once func(context.Context) error
	}{
		{"bare streams", func(ctx context.Context) error { _, err := s.stream(ctx); return err }},
		{"backups", func(ctx context.Context) error {
			made++
			return s.backUpByJob(ctx, fmt.Sprintf("made-%d", made), endpoint)
		}},
	} {
		with, err := s.writes(ctx, func(ctx context.Context) error {
			for begun := time.Now(); time.Since(begun) < backupSpell; {
				if err := kind.once(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.say("writes%s during %s: %v", at, kind.name, with)
		s.table.add("p99 of a write"+at+" during "+kind.name, "ms", milliseconds(with.Quantile(0.99)))
		s.table.add("p99 of a write"+at+" during "+kind.name+", as a ratio to without", "", float64(with.Quantile(0.99))/float64(without.Quantile(0.99)))
	}
	return nil
}

// storeInside runs an S3 server in a pod and returns its address.
func (s *subject) storeInside(ctx context.Context) (string, error) {
	if err := s.kubectl(ctx, storePod, "apply", "-f", "-"); err != nil {
		return "", err
	}
	view, err := s.Pod(ctx, s.namespace, "store")
	if err != nil {
		return "", err
	}
	defer view.Close()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := view.Await(limited, harness.AllReady(1)); err != nil {
		return "", fmt.Errorf("the store: %w", err)
	}
	endpoint := "http://" + net.JoinHostPort(view.List()[0].Status.PodIP, "7070")
	return endpoint, makeBucket(ctx, endpoint)
}

// makeBucket makes the bucket in a server as soon as the server responds.
func makeBucket(ctx context.Context, endpoint string) error {
	client := s3.New(s3.Options{BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1", Credentials: objectsCredentials})
	return wait.PollUntilContextTimeout(ctx, harness.PollInterval, limit, true, func(ctx context.Context) (bool, error) {
		_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(backupBucket)})
		return err == nil, nil
	})
}

// backUpByJob makes an EtcdBackup and waits until it has succeeded.
func (s *subject) backUpByJob(ctx context.Context, name, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, largeLimit)
	defer cancel()
	err := s.kubectl(ctx, fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: %s}
spec:
  etcdCluster: {name: %s}
  storageType: S3
  s3: {path: %s/%s, awsSecret: store, endpoint: %q, forcePathStyle: true}
`, name, s.name, backupBucket, name, endpoint), "apply", "-f", "-")
	if err != nil {
		return err
	}
	return s.awaitBackup(ctx, name)
}

func (s *subject) awaitBackup(ctx context.Context, name string) error {
	view, err := s.Backup(ctx, s.namespace, name)
	if err != nil {
		return err
	}
	defer view.Close()
	var failed error
	err = view.Await(ctx, func(list []*v1beta2.EtcdBackup) bool {
		if len(list) != 1 {
			return false
		}
		status := &list[0].Status
		if status.Phase == v1beta2.BackupPhaseFailed {
			failed = fmt.Errorf("backup %s: %s", name, status.Reason)
		}
		return status.Succeeded || failed != nil
	})
	return errors.Join(err, failed)
}
