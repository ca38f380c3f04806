// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// name is the name of the only member, which is stored in the member list.
	name = "embedded"
	// snapshotEntries is after how many writes etcd may remove its log. The default of 10,000 is
	// more than the volume holds if objects are large.
	snapshotEntries = 1000
	// catchUpEntries is how many writes stay in memory for followers. There are none.
	catchUpEntries = 100
	// progressInterval is how often etcd tells watch caches that they are up to date.
	progressInterval = 5 * time.Second
	// maxSocketPath is the longest path of a unix socket on Linux.
	maxSocketPath = 107
)

// ErrStopped means that etcd has stopped before it was ready.
var ErrStopped = errors.New("embedded etcd stopped before it was ready")

// Server is a running etcd.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
	log      *logBridge
	once     sync.Once
	lock     *os.File
	// socketDir is a temporary directory for the socket; empty if the data directory has it.
	socketDir string
	// quota is the largest size of the database, in bytes.
	quota int64
	full  atomic.Bool
	// sending is held for reading by each snapshot that is being sent, and for writing by a defragmentation.
	sending sync.RWMutex
	// backups serves snapshots; nil if nothing does.
	backups *backups
	// stopGuard ends the guard of the space, and guarded is closed when it has ended.
	stopGuard context.CancelFunc
	guarded   chan struct{}
}

// Start starts etcd with its data below dir and returns when etcd is ready.
func Start(ctx context.Context, dir string) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the embedded etcd: %w", err)
	}
	server := &Server{log: newLogBridge(klog.FromContext(ctx).WithName("etcd"))}
	if server.lock, err = lockDirectory(dir); err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	socket, err := server.socket(dir)
	if err != nil {
		server.release()
		return nil, err
	}
	server.endpoint = (&url.URL{Scheme: "unix", Path: socket}).String()
	if server.quota, err = quotaOf(data); err != nil {
		server.release()
		return nil, err
	}

	server.etcd, err = embed.StartEtcd(server.config(data, socket))
	if err != nil {
		server.release()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", data, err)
	}
	select {
	case <-server.etcd.Server.ReadyNotify():
		if _, err = server.guardOnce(ctx, true); err != nil {
			break
		}
		if err = server.keepStorageVersion(ctx, clock.RealClock{}); err != nil {
			break
		}
		server.startGuard(ctx)
		return server, nil
	case <-server.etcd.Server.StopNotify():
		err = ErrStopped
	case err = <-server.etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	server.Stop()
	return nil, fmt.Errorf("embedded etcd in %s: %w", data, err)
}

// startGuard starts the guard of the space, which Stop ends.
func (s *Server) startGuard(ctx context.Context) {
	// The server outlives the context of its start.
	ctx, s.stopGuard = context.WithCancel(context.WithoutCancel(ctx))
	s.guarded = make(chan struct{})
	go s.guard(ctx)
}

func (s *Server) config(data, socket string) *embed.Config {
	config := embed.NewConfig()
	config.Name = name
	config.Dir = data
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	// There is no peer. The advertised addresses are required, but nothing listens there.
	config.ListenPeerUrls = nil
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(name)
	config.EnableGRPCGateway = false
	config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainStreamInterceptor(s.holdSnapshots)}
	config.QuotaBackendBytes = s.quota
	config.SnapshotCount = snapshotEntries
	config.SnapshotCatchUpEntries = catchUpEntries
	config.WatchProgressNotifyInterval = progressInterval
	// The default of the library is 0, with which etcd logs a warning for every request.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(s.log))
	return config
}

// socket returns the path of the socket. The mode of its directory keeps other users out.
func (s *Server) socket(dir string) (string, error) {
	run := filepath.Join(dir, "run")
	socket := filepath.Join(run, "client.sock")
	if len(socket) <= maxSocketPath {
		if err := os.MkdirAll(run, 0o700); err != nil {
			return "", fmt.Errorf("directory for the socket of the embedded etcd: %w", err)
		}
		// The fsGroup of a volume may have opened the directory to a group.
		return socket, os.Chmod(run, 0o700)
	}
	temporary, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		return "", fmt.Errorf("directory for the socket of the embedded etcd: %w", err)
	}
	s.socketDir = temporary
	return filepath.Join(temporary, "client.sock"), nil
}

// release removes the temporary directory and the lock.
func (s *Server) release() {
	if s.socketDir != "" {
		_ = os.RemoveAll(s.socketDir)
	}
	_ = s.lock.Close()
}

// Endpoint returns the URL for clients.
func (s *Server) Endpoint() string { return s.endpoint }

// Stopped returns a channel that is closed when etcd has stopped, by itself or by Stop.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Stop stops etcd. Close its clients before: etcd waits for them.
func (s *Server) Stop() {
	s.once.Do(func() {
		// etcd logs errors about its own closed listeners while it stops.
		s.log.stopping.Store(true)
		// The guard may wait for an open snapshot, so backups end first.
		if s.backups != nil {
			s.backups.stop()
		}
		if s.stopGuard != nil {
			s.stopGuard()
			<-s.guarded
		}
		s.etcd.Close()
		s.release()
	})
}
