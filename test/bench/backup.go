// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	layout "github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	backupMembers = 3
	// backupWrites is the interval of the foreground writes, and backupSpell how long
	// they are watched at least, with backups and without.
	backupWrites = 5 * time.Millisecond
	backupSpell  = 15 * time.Second
	// maxBackups of one size: what they read and write is much.
	maxBackups = 5

	backupBucket = "bench"
	backupKey    = "bench"
	grownValue   = 512 << 10
	growers      = 8
)

// backup measures the agent as a process on this machine, between the members of a cluster on
// the local Kubernetes and an S3 server on loopback. It reads back what the agent has stored,
// and compares it. It measures the memory of the agent, and its rate as a share of the rate
// of the bare stream of a follower right before. It also measures what backups made by Jobs
// do to writes.
func (b *bench) backup(ctx context.Context) error {
	for _, megabytes := range b.sizes {
		err := b.within(ctx, func(ctx context.Context, namespace string) error {
			return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
				return s.backups(ctx, megabytes)
			})
		})
		if err != nil {
			return fmt.Errorf("%d MiB: %w", megabytes, err)
		}
	}
	return nil
}

func (s *subject) backups(ctx context.Context, megabytes int) error {
	if _, err := s.start(ctx, backupMembers, etcdVersion, largeQuota+etcdShare); err != nil {
		return err
	}
	s.say("writing %d MiB", megabytes)
	if err := s.grow(ctx, megabytes); err != nil {
		return err
	}
	store, err := s.serveObjects(ctx)
	if err != nil {
		return err
	}
	defer store.stop()
	at := fmt.Sprintf(" at %d MiB", megabytes)
	for i := range min(s.repetitions, maxBackups) {
		stream, err := s.stream(ctx)
		if err != nil {
			return err
		}
		s.table.add("bare snapshot stream"+at, "MiB/s", stream/(1<<20))
		for _, verify := range []v1beta2.Verification{v1beta2.VerificationHash, v1beta2.VerificationChecksum} {
			saved, memory, err := store.save(ctx, s, verify)
			if err != nil {
				return err
			}
			if saved.VerifiedBy != verify {
				return fmt.Errorf("the backup was verified by %s, not by %s", saved.VerifiedBy, verify)
			}
			rate := float64(saved.Size) / saved.Finished.Sub(saved.Started).Seconds()
			s.say("backup%s %d, %s: %.2f of %.0f MiB/s, %.0f MiB of memory", at, i+1, verify, rate/stream, stream/(1<<20), memory)
			row := fmt.Sprintf("backup to S3%s, verified by %s", at, verify)
			s.table.add(row+", as a share of that rate", "", rate/stream)
			s.table.add(row+": peak memory of the agent", "MiB", memory)
		}
	}
	return s.foreground(ctx, at)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// writes runs a writer while work does.
func (s *subject) writes(ctx context.Context, work func(context.Context) error) (*harness.Report, error) {
	writer, err := s.members.Write(ctx, backupWrites)
	if err != nil {
		return nil, err
	}
	err = work(ctx)
	report, stopErr := writer.Stop()
	return report, errors.Join(err, stopErr)
}

// grow writes what neither compresses nor repeats.
func (s *subject) grow(ctx context.Context, megabytes int) error {
	client, err := s.members.Client(s.members.Live()[0])
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(growers)
	for i := range megabytes << 20 / grownValue {
		group.Go(func() error {
			value := make([]byte, grownValue)
			_, _ = rand.Read(value) // it never fails
			_, err := client.Put(ctx, fmt.Sprintf("grown/%06d", i), string(value))
			return err
		})
	}
	return group.Wait()
}

// follower returns the member that serves backups first.
func (s *subject) follower(ctx context.Context) (harness.Response, error) {
	responses, err := s.members.Ask(ctx)
	if err != nil {
		return harness.Response{}, err
	}
	for _, a := range responses {
		if a.ID != a.Leader {
			return a, nil
		}
	}
	return harness.Response{}, errors.New("no member follows")
}

// stream reads a snapshot and drops it, and returns the bytes a second.
func (s *subject) stream(ctx context.Context) (float64, error) {
	from, err := s.follower(ctx)
	if err != nil {
		return 0, err
	}
	client, err := s.members.Client(from.Pod)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	body, err := client.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	n, err := io.Copy(io.Discard, body)
	return float64(n) / time.Since(begun).Seconds(), err
}

// objects is an S3 server on loopback.
type objects struct {
	dir, endpoint string
	server        *exec.Cmd
	saved         int
}

const (
	objectsUser = "bench"
	objectsKey  = "bench-key"
)

var objectsCredentials = credentials.NewStaticCredentialsProvider(objectsUser, objectsKey, "")

// serveObjects starts the server with a bucket.
func (s *subject) serveObjects(ctx context.Context) (*objects, error) {
	program := filepath.Join(s.Bin, "versitygw")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("run hack/object-stores.sh first: %w", err)
	}
	// In memory: a store does not share a disk with the members.
	dir, err := os.MkdirTemp("/dev/shm", "etcd-operator-bench-")
	if err != nil {
		return nil, err
	}
	o := &objects{dir: dir}
	for _, sub := range []string{"data", "side", "secret"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	secret := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", objectsUser, objectsKey)
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "secret", "credentials"), []byte(secret), 0o600))
	if err == nil {
		err = o.serve(ctx, program)
	}
	if err != nil {
		o.stop()
		return nil, err
	}
	return o, nil
}

func (o *objects) serve(ctx context.Context, program string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	listener.Close()
	o.endpoint = "http://" + address
	o.server = exec.CommandContext(ctx, program, "--quiet", "--port", address, "posix", "--sidecar", filepath.Join(o.dir, "side"), filepath.Join(o.dir, "data"))
	o.server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+objectsUser, "ROOT_SECRET_KEY="+objectsKey)
	if err := o.server.Start(); err != nil {
		o.server = nil
		return err
	}
	return makeBucket(ctx, o.endpoint)
}

func (o *objects) stop() {
	if o.server != nil {
		_ = o.server.Process.Kill()
		_ = o.server.Wait()
	}
	_ = os.RemoveAll(o.dir)
}

// save runs the agent once and returns what it says and its peak memory in MiB.
func (o *objects) save(ctx context.Context, s *subject, verify v1beta2.Verification) (*agent.Result, float64, error) {
	o.saved++
	request := &agent.Request{
		ID:   fmt.Sprintf("bench-%d", o.saved),
		Etcd: &agent.Etcd{},
		Store: &agent.Store{
			Type: v1beta2.BackupStorageTypeS3, Bucket: backupBucket, Key: backupKey, Endpoint: o.endpoint, ForcePathStyle: true,
			CredentialsDir: filepath.Join(o.dir, "secret"),
		},
		Save: &agent.Save{
			Layout: layout.LayoutDirectory, Owner: layout.Owner{Namespace: s.namespace, Name: s.name, UID: "bench"},
			Started: time.Now(), Verify: verify,
		},
	}
	for _, p := range s.members.Live() {
		request.Etcd.Endpoints = append(request.Etcd.Endpoints, agent.Endpoint{Name: p.Name, URL: "http://" + net.JoinHostPort(p.Status.PodIP, "2379")})
	}
	args, err := request.Args(agent.CommandSave)
	if err != nil {
		return nil, 0, err
	}
	file := filepath.Join(o.dir, "result")
	process := exec.CommandContext(ctx, s.agent, append(args, "--"+agent.ResultFileFlag+"="+file)...)
	// The limits of the Job's pod.
	process.Env = append(os.Environ(), "GOMEMLIMIT=200MiB")
	var said bytes.Buffer
	process.Stdout, process.Stderr = &said, &said
	if err := process.Run(); err != nil {
		return nil, 0, fmt.Errorf("the agent: %w: %s", err, strings.TrimSpace(said.String()))
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	result, err := agent.DecodeResult(string(raw))
	if err != nil {
		return nil, 0, err
	}
	usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, 0, errors.New("the kernel does not tell the memory of a process")
	}
	// What is stored has been measured; the disk is needed for the next one.
	return result, float64(usage.Maxrss) / 1024, os.RemoveAll(filepath.Join(o.dir, "data", backupBucket, backupKey))
}
