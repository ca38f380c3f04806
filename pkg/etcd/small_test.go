// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	// serveElsewhere makes TestServeElsewhere be a server of its own.
	serveElsewhere = "ETCD_OPERATOR_TEST_SERVE"

	// Most that one idle connection may take of the memory, also under the race detector, and
	// of the goroutines.
	maxPerConnection           = 64 << 10
	maxGoroutinesPerConnection = 5
)

// TestServeElsewhere serves in a process of its own, whose memory is not measured, until
// its input ends.
func TestServeElsewhere(t *testing.T) {
	if os.Getenv(serveElsewhere) == "" {
		t.Skip("it is the other process of TestConnectionIsSmall")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, &fakeServer{})
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	fmt.Println("address", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestConnectionIsSmall: there is a connection to each member, so its memory times the
// members of a fleet is what the controller takes.
func TestConnectionIsSmall(t *testing.T) { // not parallel: it counts goroutines
	address := startElsewhere(t)
	const members = 200
	p := NewPool(PoolConfig{})
	defer p.Close()
	var target Target
	for i := range members {
		target.Endpoints = append(target.Endpoints, Endpoint{Name: fmt.Sprint(i), URL: fmt.Sprintf("http://m%d.c.ns.svc:2379", i), Address: address})
	}
	memory, goroutines := measure()
	for range 3 {
		for _, e := range target.Endpoints {
			ask(t, p, target, e)
		}
	}
	eventually(t, "the connections come to rest", func() bool {
		return runtime.NumGoroutine() <= goroutines+maxGoroutinesPerConnection*members
	})
	after, running := measure()
	each := (int64(after) - int64(memory)) / members
	t.Logf("a connection takes %d bytes and %.1f goroutines", each, float64(running-goroutines)/members)
	if p.Len() != members || each > maxPerConnection {
		t.Errorf("%d connections take %d bytes each, more than %d", p.Len(), each, maxPerConnection)
	}
}

// measure returns the memory of the heap and of the stacks, and the number of goroutines.
func measure() (memory uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

func startElsewhere(t *testing.T) (address string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServeElsewhere$", "-test.v")
	command.Env = append(os.Environ(), serveElsewhere+"=1")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "address "); found {
			return address
		}
	}
	t.Fatal("the other process does not serve")
	return ""
}
