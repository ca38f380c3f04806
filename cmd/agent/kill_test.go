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
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// gate stands before a store and calls kill at one of the requests.
type gate struct {
	next http.Handler

	mu        sync.Mutex
	requests  int
	at        int
	responded bool // kill after the store has responded, before the client hears of it
	kill      func()
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.requests++
	kill, responded := g.requests == g.at, g.responded
	g.mu.Unlock()
	if !kill {
		g.next.ServeHTTP(w, r)
		return
	}
	if responded {
		g.next.ServeHTTP(httptest.NewRecorder(), r)
	}
	g.kill()
	panic(http.ErrAbortHandler)
}

// arm sets the request at which to kill, and counts from none.
func (g *gate) arm(at int, responded bool, kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests, g.at, g.responded, g.kill = 0, at, responded, kill
}

func (g *gate) hasHappened() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests >= g.at
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

// killer kills at the at-th thing that a process does; with responded only after the
// store has heard of it and before the process knows. It counts from none.
type killer interface {
	arm(at int, responded bool, kill func())
	// hasHappened is true once the process has done that thing.
	hasHappened() bool
}

// TestKilledAtEveryRequest kills the process at each request that a backup sends to a real
// store of each kind, before and after the response. On a volume it kills the process at
// each change of a file. Each visible backup then passes verification, and another attempt makes the
// backup. Nothing of the interrupted attempt is left after uploads are aborted.
func TestKilledAtEveryRequest(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	fillDatabase(t, member.ClientURL, 17)
	eachRealStore(t, func(t *testing.T, s *realStore) {
		var k killer
		endpoint := ""
		if s.dir != "" {
			k = newFileGate(t, filepath.Join(s.dir, ".etcd-operator-partial"))
		} else {
			g := &gate{next: storetest.NewFront(t, s.endpoint)}
			front := httptest.NewUnstartedServer(g)
			front.TLS = storetest.ServerTLS(t)
			front.StartTLS()
			t.Cleanup(front.Close)
			k, endpoint = g, front.URL
		}
		killAgain(t, s, k, s.at(t, endpoint, s.right), member.ClientURL)
	})
}

func killAgain(t *testing.T, s *realStore, k killer, place *agent.Store, member string) {
	t.Helper()
	store := s.open(t)
	kills, verified := 0, map[string]bool{}
	for _, responded := range []bool{false, true} {
		if responded && s.dir != "" {
			break // what happens on a volume has happened
		}
		for at := 1; ; at++ {
			request := encode(t, agent.CommandSave, saveTo(place, fmt.Sprintf("id-%d-%t", at, responded), member))
			if runsUntilKilled(t, k, at, responded, request) {
				kills++
			} else if !k.hasHappened() {
				break // it does fewer things than that
			} // else it was quicker than the kill
			mustVerify(t, store, place, verified)
			k.arm(0, false, nil)
			if result, said, failed := runAgent(t, agent.CommandSave, request); failed || !result.Verified {
				t.Fatalf("the attempt after a kill at request %d: %+v %s", at, result, said)
			}
		}
	}
	least := 14
	if s.dir != "" {
		least = len(filePoints()) - 4 // where the process may be quicker than the kill
	}
	if kills < least {
		t.Errorf("it was killed %d times: too little was tested", kills)
	}
	aborted, err := store.AbortUploads(t.Context(), "", storetest.Any, time.Now().Add(time.Hour))
	// At Google an upload is one request, which leaves nothing; at Azure the attempt after each
	// kill has taken the place of what was sent for the same key.
	byItself := s.kind == v1beta2.BackupStorageTypeGCS || s.kind == v1beta2.BackupStorageTypeABS
	if err != nil || (aborted == 0) != byItself {
		t.Errorf("aborted %d, %v: a killed upload was to be found", aborted, err)
	}
	t.Logf("%d kills, %d interrupted uploads aborted", kills, aborted)
	mustAbortUploads(t, s, place)
	if s.kind == v1beta2.BackupStorageTypeABS {
		mustHaveNoBlocks(t, s)
	}
	if s.dir != "" {
		if left, err := os.ReadDir(filepath.Join(s.dir, ".etcd-operator-partial")); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// mustAbortUploads deletes what is older than a second until no object is left that belongs to no
// backup, and no upload.
func mustAbortUploads(t *testing.T, s *realStore, place *agent.Store) {
	t.Helper()
	store := s.open(t)
	r := &agent.Request{ID: "s", Store: place, AbortUploads: &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: "u"}, OlderThanSeconds: 1}}
	request := encode(t, agent.CommandAbortUploads, r)
	for begin := time.Now(); ; {
		old := time.Since(begin) > 2*time.Second // whatever was there
		if result, said, failed := runAgent(t, agent.CommandAbortUploads, request); failed {
			t.Fatalf("%+v %s", result, said)
		}
		_, orphans := stored(t, store, place.Key+"/")
		if len(orphans) == 0 && old {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("not aborted: %v", orphans)
		}
	}
	if again, err := store.AbortUploads(t.Context(), place.Key+"/", storetest.Any, time.Now().Add(time.Hour)); err != nil || again != 0 {
		t.Errorf("%d uploads are left, %v", again, err)
	}
}

// mustHaveNoBlocks looks for blocks in Azure's store that belong to no blob.
func mustHaveNoBlocks(t *testing.T, s *realStore) {
	t.Helper()
	client := azureContainer(t, s)
	pages := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{UncommittedBlobs: true}})
	seen := 0
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			seen++
			list, err := client.NewBlockBlobClient(*item.Name).GetBlockList(t.Context(), blockblob.BlockListTypeUncommitted, nil)
			if err != nil || len(list.UncommittedBlocks) > 0 {
				t.Errorf("%s has %d blocks that belong to no blob, %v", *item.Name, len(list.UncommittedBlocks), err)
			}
		}
	}
	if seen == 0 {
		t.Error("nothing is listed")
	}
}

// runsUntilKilled runs the agent and returns whether it was killed.
func runsUntilKilled(t *testing.T, k killer, at int, responded bool, request string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], string(agent.CommandSave), "--request="+request,
		"--result-file="+filepath.Join(t.TempDir(), "termination-log"))
	process.Env = append(os.Environ(), asAgent+"=1")
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	started := make(chan *os.Process, 1)
	k.arm(at, responded, func() { _ = (<-started).Kill() })
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
	for object, err := range store.List(t.Context(), place.Key+"/") {
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
