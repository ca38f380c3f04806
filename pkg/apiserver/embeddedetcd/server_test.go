// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2/textlogger"
)

func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func connect(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestKeepsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	client := connect(t, first)
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	first.Stop()
	<-first.Stopped()

	response, err := connect(t, start(t, dir)).Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "value" {
		t.Errorf("after a restart there is %v", response.Kvs)
	}
}

// TestOnlyThisUser checks that other users cannot open the data or the socket.
func TestOnlyThisUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	for _, name := range []string{"etcd", "run"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, want 0700", name, info.Mode().Perm())
		}
	}
	socket, err := os.Stat(filepath.Join(dir, "run", "client.sock"))
	if err != nil || socket.Mode()&fs.ModeSocket == 0 {
		t.Errorf("no socket: %v %v", socket, err)
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(t.TempDir(), strings.Repeat("long/", 30)))
	if _, err := connect(t, server).Get(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := os.Stat(filepath.Dir(endpoint.Path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket's directory is left: %v", err)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	if _, err := Start(t.Context(), dir); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want %v", err, ErrInUse)
	}
	first.Stop()
	start(t, dir)
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), file); err == nil {
		t.Error("started in a file")
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Both outcomes are right: etcd may be ready before Start checks the context.
	if server, err := Start(ctx, dir); err == nil {
		server.Stop()
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	start(t, dir)
}

// TestLog checks what of etcd's talk reaches the log.
func TestLog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		verbosity int
		level     zapcore.Level
		stopping  bool
		want      string
	}{
		{"information is not logged at level 2", 2, zapcore.InfoLevel, false, ""},
		{"information is logged at level 4", 4, zapcore.InfoLevel, false, "I"},
		{"details are not logged at level 4", 4, zapcore.DebugLevel, false, ""},
		{"details are logged at level 6", 6, zapcore.DebugLevel, false, "I"},
		{"warnings are logged at level 0", 0, zapcore.WarnLevel, false, "I"},
		{"errors are logged at level 0", 0, zapcore.ErrorLevel, false, "E"},
		{"errors of a server that stops are not logged", 2, zapcore.ErrorLevel, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var output bytes.Buffer
			bridge := newLogBridge(textlogger.NewLogger(textlogger.NewConfig(
				textlogger.Verbosity(test.verbosity), textlogger.Output(&output))))
			bridge.stopping.Store(test.stopping)
			zap.New(bridge).With(zap.String("first", "1")).Log(test.level, "Something happened", zap.Int("second", 2))
			got := output.String()
			if test.want == "" {
				if got != "" {
					t.Errorf("logged %q, want nothing", got)
				}
				return
			}
			if !strings.HasPrefix(got, test.want) || !strings.Contains(got, `"Something happened" first="1" second=2`) {
				t.Errorf("logged %q, want severity %s with its values", got, test.want)
			}
		})
	}
}
