// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
)

// storageEtcd is a process with an etcd that holds objects of the operator. It has the minor version that the previous
// release embeds and that the storage of two API servers has, or it is the one that this release embeds.
type storageEtcd struct {
	process *exec.Cmd
	storage
}

// embeddedDir is a variable of the environment. With it a process of this test program serves the embedded etcd of that
// directory, and nothing else. See startKubeEtcd for why it needs a process of its own.
const embeddedDir = "ETCD_OPERATOR_TEST_EMBEDDED_DIR"

// storagePatience is how long an etcd may take to start and respond.
const storagePatience = 20 * time.Second

func startOlder(t *testing.T, data string) storageEtcd {
	t.Helper()
	socket := "unix://" + filepath.Join(t.TempDir(), "s")
	process := exec.CommandContext(t.Context(), filepath.Join(env.bin, "etcd"),
		append([]string{"--data-dir", data, "--listen-client-urls", socket, "--listen-peer-urls", socket + "p"}, storageFlags...)...)
	process.Stderr = t.Output()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return storageEtcd{process: process, storage: storage{T: t, endpoint: socket}}
}

// startEmbedded returns when the embedded etcd serves.
func startEmbedded(t *testing.T, dir string) storageEtcd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program)
	process.Env, process.Stderr = append(os.Environ(), embeddedDir+"="+dir), t.Output()
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the embedded etcd does not start: %v and %v", err, process.Wait())
	}
	return storageEtcd{process: process, storage: storage{T: t, endpoint: strings.TrimSpace(endpoint)}}
}

// serveEmbedded writes the endpoint and serves it until the process is interrupted.
func serveEmbedded(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	server, err := embeddedetcd.Start(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	fmt.Println(server.Endpoint())
	<-ctx.Done()
	return 0
}

func (e storageEtcd) stop(how os.Signal) {
	if err := e.process.Process.Signal(how); err != nil {
		e.Error(err)
	}
	_ = e.process.Wait()
}
