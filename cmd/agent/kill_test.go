// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/s3"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// gate stands before a store and calls kill at one of the requests.
type gate struct {
	next http.Handler

	mu       sync.Mutex
	requests int
	at       int
	answered bool // kill after the store has answered, before the client hears of it
	kill     func()
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.requests++
	kill, answered := g.requests == g.at, g.answered
	g.mu.Unlock()
	if !kill {
		g.next.ServeHTTP(w, r)
		return
	}
	if answered {
		g.next.ServeHTTP(httptest.NewRecorder(), r)
	}
	g.kill()
	panic(http.ErrAbortHandler)
}

// arm sets the request at which to kill, and counts from none.
func (g *gate) arm(at int, answered bool, kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests, g.at, g.answered, g.kill = 0, at, answered, kill
}

// fillDatabase makes a database of more than one part, which does not compress.
func fillDatabase(t *testing.T, url string, megabytes int) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	dice := rand.NewChaCha8([32]byte{1})
	for i := range megabytes {
		value := make([]byte, 1<<20)
		_, _ = dice.Read(value)
		if _, err := client.Put(t.Context(), fmt.Sprintf("large-%d", i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledAtEveryRequest kills the process at each of the requests that a backup makes
// of a real store, before and after the store has answered it. Whatever is visible then
// can be verified; another attempt makes the backup; and a sweep finds every upload that
// was interrupted.
func TestKilledAtEveryRequest(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	fillDatabase(t, member.ClientURL, 17)
	backend := storetest.S3(t)
	makeBucket(t, backend, "backups")
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	// The name of the host stays: it is signed.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	g := &gate{next: proxy}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	place := &agent.Store{
		Type: v1beta2.BackupStorageTypeS3, Bucket: "backups", Key: "k", Endpoint: front.URL, ForcePathStyle: true,
		CredentialsDir: storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey),
	}
	save := func(id string) string {
		return encode(t, agent.CommandSave, &agent.Request{
			ID: id, StallTimeoutSeconds: 5, TimeoutSeconds: 60, Store: place,
			Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{Name: "m0", URL: member.ClientURL}}},
			Save: &agent.Save{Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: "u"}, Started: time.Now()},
		})
	}
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	store, err := s3.New(t.Context(), s3.Config{Bucket: "backups", Endpoint: backend, ForcePathStyle: true, CredentialsDir: place.CredentialsDir, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	kills, verified := 0, map[string]bool{}
	for _, answered := range []bool{false, true} {
		for at := 1; ; at++ {
			request := save(fmt.Sprintf("id-%d-%t", at, answered))
			if !killedAt(t, g, at, answered, request) {
				break // it made fewer requests than that
			}
			kills++
			mustVerify(t, store, place, verified)
			g.arm(0, false, nil)
			if result, said, failed := runAgent(t, agent.CommandSave, request); failed || !result.Verified {
				t.Fatalf("the attempt after a kill at request %d: %+v %s", at, result, said)
			}
		}
	}
	if kills < 16 {
		t.Errorf("it was killed %d times: nothing was tested", kills)
	}
	swept, err := store.Sweep(t.Context(), "", time.Now().Add(time.Hour))
	if err != nil || swept == 0 {
		t.Errorf("swept %d, %v: a killed upload was to be found", swept, err)
	}
	if again, err := store.Sweep(t.Context(), "", time.Now().Add(time.Hour)); err != nil || again != 0 {
		t.Errorf("%d uploads are left, %v", again, err)
	}
	t.Logf("%d kills, %d interrupted uploads swept", kills, swept)
}

// killedAt runs the agent and returns whether it was killed.
func killedAt(t *testing.T, g *gate, at int, answered bool, request string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], string(agent.CommandSave), "--request="+request,
		"--result-file="+filepath.Join(t.TempDir(), "termination-log"))
	process.Env = append(os.Environ(), asAgent+"=1")
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	started := make(chan *os.Process, 1)
	g.arm(at, answered, func() { _ = (<-started).Kill() })
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	started <- process.Process
	err := process.Wait()
	mustHideSecrets(t, out.String())
	if err == nil {
		return false
	}
	if process.ProcessState.ExitCode() != -1 {
		t.Fatalf("it ended by itself: %v: %s", err, out.String())
	}
	return true
}

// mustVerify verifies every backup that is visible, once.
func mustVerify(t *testing.T, store objectstore.Store, place *agent.Store, verified map[string]bool) {
	t.Helper()
	for object, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if !manifest.IsManifest(object.Key) || verified[object.Key] {
			continue
		}
		verified[object.Key] = true
		request := encode(t, agent.CommandVerify, &agent.Request{ID: "v", Store: place, Verify: &agent.Verify{Expected: agent.Expected{Key: object.Key}}})
		if result, said, failed := runAgent(t, agent.CommandVerify, request); failed || !result.Verified {
			t.Errorf("%s is visible: %s", object.Key, said)
		}
	}
}
