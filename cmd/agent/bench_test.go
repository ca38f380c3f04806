// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

const (
	mebibyte  = 1 << 20
	valueSize = mebibyte
	// randomBytes of each value; the rest repeats, so that compression has as much to
	// do as it has with objects of Kubernetes.
	randomBytes = valueSize / 4
)

// BenchmarkSave measures the agent as a process, with its peak memory, against a real
// member and stores on the same machine. `share` compares its rate with the bare snapshot
// stream, which the same client reads right before. The agent reads back what it stored,
// over TLS in a store, except in cases that use the store's checksum.
func BenchmarkSave(b *testing.B) {
	for _, size := range []int{100, 2048} {
		b.Run(fmt.Sprintf("%dMiB", size), func(b *testing.B) {
			endpoint := fullMember(b, size)
			s3Endpoint := storetest.S3(b)
			makeBucket(b, s3Endpoint, "backups")
			s3Store := agent.Store{
				Type: v1beta2.BackupStorageTypeS3, Bucket: "backups", Key: "k", Endpoint: s3Endpoint, ForcePathStyle: true, CADir: storeCA(b),
				CredentialsDir: storetest.AWSSecret(b, storetest.AccessKey, storetest.SecretKey),
			}
			pvc := agent.Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "claim", VolumeDir: b.TempDir()}
			for _, c := range []struct {
				name        string
				store       agent.Store
				compression v1beta2.Compression
				verify      v1beta2.Verification
			}{
				{"volume", pvc, v1beta2.CompressionNone, v1beta2.VerificationHash},
				{"volume-zstd", pvc, v1beta2.CompressionZstd, v1beta2.VerificationHash},
				{"s3", s3Store, v1beta2.CompressionNone, v1beta2.VerificationHash},
				{"s3-zstd", s3Store, v1beta2.CompressionZstd, v1beta2.VerificationHash},
				{"s3-checksum", s3Store, v1beta2.CompressionNone, v1beta2.VerificationChecksum},
				{"s3-zstd-checksum", s3Store, v1beta2.CompressionZstd, v1beta2.VerificationChecksum},
			} {
				b.Run(c.name, func(b *testing.B) { benchmarkSave(b, endpoint, c.store, c.compression, c.verify) })
			}
		})
	}
}

func benchmarkSave(b *testing.B, endpoint string, store agent.Store, compression v1beta2.Compression, verify v1beta2.Verification) {
	var raw, saved, peak float64
	n := 0
	for b.Loop() {
		n++
		bytes, took := streamOnly(b, endpoint)
		raw += float64(bytes) / mebibyte / took.Seconds()
		b.SetBytes(bytes)
		r := &agent.Request{
			ID: fmt.Sprintf("bench-%d", n), Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{Name: "m", URL: endpoint}}}, Store: &store,
			Save: &agent.Save{
				Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: b.Name()[len("BenchmarkSave/"):]},
				Started: time.Now(), Compression: compression, Verify: verify,
			},
		}
		args, err := r.Args(agent.CommandSave)
		if err != nil {
			b.Fatal(err)
		}
		process := exec.CommandContext(b.Context(), os.Args[0], append(args, "--result-file="+b.TempDir()+"/result")...)
		process.Env = append(os.Environ(), asAgent+"=1", "GOMEMLIMIT=200MiB")
		start := time.Now()
		out, err := process.CombinedOutput()
		took = time.Since(start)
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		saved += float64(bytes) / mebibyte / took.Seconds()
		if usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, float64(usage.Maxrss)/1024)
		}
	}
	b.ReportMetric(raw/float64(n), "raw-MiB/s")
	b.ReportMetric(saved/float64(n), "saved-MiB/s")
	b.ReportMetric(saved/raw, "share")
	b.ReportMetric(peak, "peak-MiB")
}

// streamOnly reads a snapshot and does nothing with it.
func streamOnly(b *testing.B, endpoint string) (int64, time.Duration) {
	b.Helper()
	pool := etcd.NewPool(etcd.PoolConfig{})
	defer pool.Close()
	e := etcd.Endpoint{Name: "m", URL: endpoint}
	start := time.Now()
	stream, err := pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{e}}).Snapshot(b.Context(), e, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{stream}, make([]byte, mebibyte))
	if err != nil {
		b.Fatal(err)
	}
	return n, time.Since(start)
}

// fullMember starts a member with a database of about size MiB.
func fullMember(b *testing.B, size int) string {
	b.Helper()
	dir := b.TempDir()
	endpoint := "http://" + storetest.Serve(b, storetest.Program(b, "etcd"), nil, func(address string) []string {
		return []string{
			"--data-dir=" + dir, "--listen-client-urls=http://" + address, "--advertise-client-urls=http://" + address,
			"--listen-peer-urls=http://127.0.0.1:0", "--quota-backend-bytes=8589934592", "--unsafe-no-fsync",
			"--log-level=error", "--snapshot-count=100",
		}
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	value := make([]byte, valueSize)
	copy(value, strings.Repeat(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"example"}}`, valueSize/64))
	for i := range size {
		if _, err := rand.Read(value[:randomBytes]); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		_, err := client.Put(ctx, fmt.Sprintf("/k/%06d", i), string(value))
		cancel()
		if err != nil {
			b.Fatal(err)
		}
	}
	return endpoint
}
