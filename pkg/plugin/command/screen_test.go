// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"

	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/command"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

var update = flag.Bool("update", false, "write the screens in testdata again")

// terminal is a program in a test, and what it prints.
type terminal struct {
	command.Surroundings

	t        *testing.T
	out, err syncBuffer
}

// syncBuffer can be read while the program writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newTerminal returns a program that uses a server, with or without a terminal.
func newTerminal(t *testing.T, server *plugintest.Server, isTerminal bool) *terminal {
	t.Helper()
	p := &terminal{t: t}
	p.Surroundings = command.Surroundings{
		In: strings.NewReader(""), Out: &p.out, Err: &p.err,
		InTerminal: isTerminal, OutTerminal: isTerminal, ErrTerminal: isTerminal, Color: true, Unicode: true,
		Size: func() (int, int) { return 100, 40 }, Clock: testingclock.NewFakePassiveClock(plugintest.Now), Every: time.Millisecond,
		Connect: server.Clients,
	}
	return p
}

func (p *terminal) run(args ...string) failure.Code { return p.runIn(p.t.Context(), args...) }

func (p *terminal) runIn(ctx context.Context, args ...string) failure.Code {
	p.t.Helper()
	return command.Run(ctx, args, p.Surroundings)
}

// expect fails the test unless the program ended with a code and printed what is expected.
func (p *terminal) expect(got, code failure.Code, out ...string) {
	p.t.Helper()
	if got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	all := p.out.String() + p.err.String()
	for _, part := range out {
		if !strings.Contains(all, part) {
			p.t.Errorf("%q is missing", part)
		}
	}
	if p.t.Failed() {
		p.t.Logf("output:\n%s\nerrors:\n%s", p.out.String(), p.err.String())
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if the change is intended:\n%s", file, diff)
	}
}

// TestScreens draws every state, on a terminal and into a file.
func TestScreens(t *testing.T) {
	for name, state := range plugintest.States() {
		for screen, args := range map[string][]string{"status": {"status", "main"}, "why": {"why", "main"}} {
			for suffix, isTerminal := range map[string]bool{"": false, "-terminal": true} {
				t.Run(screen+" "+name+suffix, func(t *testing.T) {
					server := plugintest.New(t)
					server.PutState(state)
					p := newTerminal(t, server, isTerminal)
					p.expect(p.run(args...), failure.CodeDone)
					golden(t, screen+"-"+name+suffix, p.out.String())
				})
			}
		}
	}
}

func TestStatusWide(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Degraded())
	p := newTerminal(t, server, false)
	p.expect(p.run("status", "-o", "wide"), failure.CodeDone)
	golden(t, "status-wide", p.out.String())
}

// TestControlCharactersAreShown: a terminal obeys no text of a member, of a user of Kubernetes or of an error.
func TestControlCharactersAreShown(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2Jall voters serve"
	for _, isTerminal := range []bool{true, false} {
		server := plugintest.New(t)
		state := plugintest.Degraded()
		state.Health.Members[0].Errors = []string{evil}
		state.Cluster.Status.LastBackup.Name = evil
		server.PutState(state)
		server.Put("/api/v1/namespaces/prod/events", apierrors.NewBadRequest(evil))
		p := newTerminal(t, server, isTerminal)
		p.expect(p.run("status", "main"), failure.CodeDone, `\x1b]0;owned\x07\x1b[2Jall`)
		p.run("why", "main")
		if all := p.out.String() + p.err.String(); strings.Contains(all, "\x1b]") || strings.Contains(all, "\x1b[2J") {
			t.Errorf("%q", all)
		}
	}
}

// TestStatusWithoutMembers: the status of the cluster is shown if its members cannot be
// probed, and the cause.
func TestStatusWithoutMembers(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden":   plugintest.Forbidden("etcdclusters/health", "main"),
		"unavailable": apierrors.NewServiceUnavailable("no Kubernetes client"),
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Degraded())
			server.Put(plugintest.Path("etcdclusters", "main", "health"), err)
			p := newTerminal(t, server, false)
			p.expect(p.run("status", "main"), failure.CodeDone)
			golden(t, "status-"+name, p.out.String())
		})
	}
}

func TestWhyWithoutEvents(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Degraded())
	server.Put("/api/v1/namespaces/prod/events", plugintest.Forbidden("events", ""))
	p := newTerminal(t, server, false)
	p.expect(p.run("why", "main"), failure.CodeDone, "What could not be read", "the right to list events in namespace prod is missing", "ClusterRole view gives the right")
}

func TestStatusAsData(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Degraded())
			p := newTerminal(t, server, true)
			p.expect(p.run("status", "main", "-o", format), failure.CodeDone)
			var got report.Status
			if err := yaml.UnmarshalStrict([]byte(p.out.String()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Kind != "StatusReport" || got.Verdict != v1beta2.VerdictDegraded || !got.Live || len(got.Health.Members) != 3 || got.Cluster.Kind != "EtcdCluster" {
				t.Errorf("unexpected %+v", got)
			}
		})
	}
	t.Run("a list", func(t *testing.T) {
		server := plugintest.New(t)
		server.PutState(plugintest.Degraded())
		p := newTerminal(t, server, true)
		p.expect(p.run("status", "-o", "json"), failure.CodeDone)
		var got report.StatusList
		if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil || got.Kind != "StatusReportList" || len(got.Items) != 1 {
			t.Errorf("%v: unexpected %+v", err, got)
		}
	})
	t.Run("why", func(t *testing.T) {
		server := plugintest.New(t)
		server.PutState(plugintest.QuorumLost())
		p := newTerminal(t, server, true)
		p.expect(p.run("why", "main", "-o", "json"), failure.CodeDone)
		var got report.Why
		if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil || got.Kind != "WhyReport" || len(got.Warnings) != 1 || got.BlockedBy == nil || len(got.NextSteps) != 3 {
			t.Errorf("%v: unexpected %+v", err, got)
		}
	})
}

func TestStatusOfNothing(t *testing.T) {
	server := plugintest.New(t)
	server.Put(plugintest.Path("etcdclusters"), &v1beta2.EtcdClusterList{})
	p := newTerminal(t, server, false)
	p.expect(p.run("status"), failure.CodeDone, "There is no EtcdCluster in namespace prod; -A shows all namespaces.")
}

// TestWatch shows a change and ends without an error when the user interrupts.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		args     []string
		want     []string
	}{
		"a log gets a line for each change": {want: []string{"12:00:00  prod/main  Healthy  etcd 3.6.16  voters: 3 of 3 serve", "12:00:00  prod/main  Degraded  etcd 3.6.16  voters: 2 of 3 serve"}},
		"a terminal is drawn again":         {terminal: true, want: []string{"\x1b[H\x1b[1mprod/main\x1b[0m  \x1b[32mHealthy", "\x1b[33mDegraded", "\x1b[2J", "Ctrl-C ends"}},
		"data is written for each change":   {args: []string{"-o", "yaml"}, want: []string{"\nverdict: Healthy", "\nverdict: Degraded", "---\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			p := newTerminal(t, server, c.terminal)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan failure.Code)
			go func() { ended <- p.runIn(ctx, append([]string{"status", "main", "-w"}, c.args...)...) }()
			p.await(c.want[0])
			server.Put(plugintest.Path("etcdclusters", "main"), apierrors.NewServiceUnavailable("a restart"))
			server.PutState(plugintest.Degraded())
			p.await(c.want[1])
			cancel()
			p.expect(<-ended, failure.CodeDone, c.want...)
			if lines := strings.Count(p.out.String(), "voters: 3 of 3"); !c.terminal && lines > 1 {
				t.Errorf("%d lines without a change", lines)
			}
		})
	}
}

// await waits until the program has printed a text.
func (p *terminal) await(text string) {
	p.t.Helper()
	deadline := time.After(30 * time.Second)
	for !strings.Contains(p.out.String()+p.err.String(), text) {
		select {
		case <-deadline:
			p.t.Fatalf("%q was not printed:\n%s%s", text, p.out.String(), p.err.String())
		case <-time.After(time.Millisecond):
		}
	}
}
