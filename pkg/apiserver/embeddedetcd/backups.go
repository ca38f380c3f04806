// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

const (
	// maxBackupStreams is how many requests one connection may have open. A backup has two.
	maxBackupStreams = 8
	// backupKeepalive is after which time of silence the server asks whether a client is still
	// there. While a snapshot is open, etcd cannot reuse the space of deleted data.
	backupKeepalive = time.Minute
)

// backups serves the part of the API of etcd that a backup needs: the state, the revision and a
// snapshot of the data. It contains no request that changes data, so the holder of a client
// certificate can only read. Authorization of etcd cannot narrow it like that: with it, only the
// user root may take a snapshot, and the API server would need a password on its socket.
type backups struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer

	kv          pb.KVServer
	maintenance pb.MaintenanceServer
	logger      klog.Logger

	server   *grpc.Server
	listener net.Listener
	served   chan struct{}
}

// ServeBackups serves snapshots over mutual TLS on the address, until Stop. The directory has the
// files of a Secret: tls.crt, tls.key and ca.crt. They are read again for each connection, so a
// renewal needs no restart, and they may appear later: until then, connections fail.
func (s *Server) ServeBackups(ctx context.Context, address, certDir string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for backups of the embedded etcd: %w", err)
	}
	logger := klog.FromContext(ctx).WithName("backups")
	files := certFiles{dir: certDir, logger: logger, failed: &atomic.Bool{}}
	b := &backups{
		kv: v3rpc.NewKVServer(s.etcd.Server), maintenance: v3rpc.NewMaintenanceServer(s.etcd.Server, nil), logger: logger,
		listener: listener, served: make(chan struct{}),
		server: grpc.NewServer(
			grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: files.config})),
			grpc.MaxConcurrentStreams(maxBackupStreams),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: backupKeepalive}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: embed.DefaultGRPCKeepAliveMinTime}),
			// etcd waits for open snapshots when it closes its database.
			grpc.WaitForHandlers(true),
			grpc.ChainStreamInterceptor(s.holdSnapshots),
		),
	}
	pb.RegisterKVServer(b.server, b)
	pb.RegisterMaintenanceServer(b.server, b)
	s.backups = b
	go b.serve()
	logger.Info("Serving backups of the embedded etcd", "address", listener.Addr().String())
	return nil
}

func (b *backups) serve() {
	defer close(b.served)
	// An error does not end the API server: only backups fail, and their EtcdBackup reports it.
	if err := b.server.Serve(b.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		b.logger.Error(err, "The embedded etcd no longer serves backups; restart the API server")
	}
}

// stop ends open snapshots.
func (b *backups) stop() {
	b.server.Stop()
	<-b.served
}

// Status implements pb.MaintenanceServer.
func (b *backups) Status(ctx context.Context, request *pb.StatusRequest) (*pb.StatusResponse, error) {
	return b.maintenance.Status(ctx, request)
}

// Range implements pb.KVServer. It returns the revision, but no key and no value.
func (b *backups) Range(ctx context.Context, request *pb.RangeRequest) (*pb.RangeResponse, error) {
	if !request.GetCountOnly() {
		return nil, status.Error(codes.PermissionDenied, "this address serves backups: it reads the revision (countOnly) and snapshots, but no single keys")
	}
	return b.kv.Range(ctx, request)
}

// Snapshot implements pb.MaintenanceServer. A snapshot contains every object, so the log says
// which client took it.
func (b *backups) Snapshot(request *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	logger := b.logger
	if client, ok := peer.FromContext(stream.Context()); ok {
		logger = logger.WithValues("address", client.Addr.String())
		if info, ok := client.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			logger = logger.WithValues("client", info.State.PeerCertificates[0].Subject.CommonName)
		}
	}
	if err := b.maintenance.Snapshot(request, stream); err != nil {
		logger.Info("A snapshot of the embedded etcd was not sent completely", "reason", err)
		return err
	}
	logger.Info("A snapshot of the embedded etcd was sent")
	return nil
}
