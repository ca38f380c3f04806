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
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/klog/v2"
)

const (
	// name of the only member; it is part of the stored membership.
	name = "embedded"
	// quotaBytes is what etcd's authors suggest at most for one database.
	quotaBytes = 8 << 30
	// progressInterval lets watch caches notice soon that they are up to date.
	progressInterval = 5 * time.Second
	// maxSocketPath is how long the path of a unix socket may be on Linux.
	maxSocketPath = 107
)

// ErrStopped is returned by Start if etcd gives up before it is ready.
var ErrStopped = errors.New("embedded etcd stopped before it was ready")

// Server is a running etcd.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
	log      *logBridge
	once     sync.Once
	lock     *os.File
	// socketDir is set if the socket did not fit into the data directory's path.
	socketDir string
}

// Start runs etcd with its data below dir and returns when it can be used.
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
	if server.lock, err = lock(dir); err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	socket, err := server.socket(dir)
	if err != nil {
		server.release()
		return nil, err
	}
	server.endpoint = (&url.URL{Scheme: "unix", Path: socket}).String()

	server.etcd, err = embed.StartEtcd(server.config(data, socket))
	if err != nil {
		server.release()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", data, err)
	}
	select {
	case <-server.etcd.Server.ReadyNotify():
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

func (s *Server) config(data, socket string) *embed.Config {
	config := embed.NewConfig()
	config.Name = name
	config.Dir = data
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	// There will never be a peer. The advertised addresses are only names.
	config.ListenPeerUrls = nil
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(name)
	config.EnableGRPCGateway = false
	config.QuotaBackendBytes = quotaBytes
	config.WatchProgressNotifyInterval = progressInterval
	// The library's default is 0 here, which warns of every request.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(s.log))
	return config
}

// socket returns where to listen. The directory is what keeps others out.
func (s *Server) socket(dir string) (string, error) {
	run := filepath.Join(dir, "run")
	socket := filepath.Join(run, "client.sock")
	if len(socket) <= maxSocketPath {
		if err := os.MkdirAll(run, 0o700); err != nil {
			return "", fmt.Errorf("directory for the socket of the embedded etcd: %w", err)
		}
		// A volume's owner may have opened it to a group.
		return socket, os.Chmod(run, 0o700)
	}
	temporary, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		return "", fmt.Errorf("directory for the socket of the embedded etcd: %w", err)
	}
	s.socketDir = temporary
	return filepath.Join(temporary, "client.sock"), nil
}

// release gives back what Start took beside etcd.
func (s *Server) release() {
	if s.socketDir != "" {
		_ = os.RemoveAll(s.socketDir)
	}
	_ = s.lock.Close()
}

// Endpoint is where clients connect to.
func (s *Server) Endpoint() string { return s.endpoint }

// Stopped is closed when etcd has stopped, by itself or by Stop.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Stop ends etcd. Call it when no client is left: etcd waits for them.
func (s *Server) Stop() {
	s.once.Do(func() {
		// Closing listeners makes etcd complain about closed listeners.
		s.log.quiet.Store(true)
		s.etcd.Close()
		s.release()
	})
}
