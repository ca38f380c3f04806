// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// storeFault is what befalls a store while a backup is made.
type storeFault struct {
	name string
	// arrange makes it happen.
	arrange func(t *testing.T, s *realStore, front *storetest.Proxy, r *agent.Request)
	// classes are the allowed classes of the result; empty if the backup must succeed.
	classes []agent.ErrorClass
	// leaves is true if it may leave something that only AbortUploads deletes.
	leaves bool
	// happened is false if nothing was tested.
	happened func(front *storetest.Proxy, took time.Duration) bool
}

// faultStall is the time-out for a stall, in seconds. A loaded machine may take some seconds for
// an upload that does not stall.
const faultStall = 15

// slowStall is that time-out for a store that is slow, in seconds.
const slowStall = 25

func storeFaults() []storeFault {
	down := []agent.ErrorClass{agent.ClassStore, agent.ClassStalled} // which of them depends on how long it is tried
	return []storeFault{
		{
			name:     "503 now and then",
			arrange:  func(_ *testing.T, _ *realStore, front *storetest.Proxy, _ *agent.Request) { front.FailEvery(3) },
			happened: func(front *storetest.Proxy, _ time.Duration) bool { return front.Failed() > 0 },
		},
		{
			name: "slow",
			// Upload and reading back take longer than a stall may. The last 4 MiB or so of an
			// upload wait in the kernel: no byte moves for 4 s, and for longer if the machine is busy.
			arrange: func(_ *testing.T, _ *realStore, front *storetest.Proxy, r *agent.Request) {
				front.Limit(databaseSize << 20 / 15)
				r.StallTimeoutSeconds = slowStall
				r.TimeoutSeconds = int64(agentPatience.Seconds())
			},
			happened: func(_ *storetest.Proxy, took time.Duration) bool { return took > slowStall*time.Second },
		},
		{
			name: "cut once",
			arrange: func(_ *testing.T, _ *realStore, front *storetest.Proxy, _ *agent.Request) {
				front.CutOnceAfter(3 << 20)
			},
			happened: func(front *storetest.Proxy, _ time.Duration) bool { return front.HasCut() },
		},
		{
			name: "cut again and again",
			arrange: func(_ *testing.T, _ *realStore, front *storetest.Proxy, r *agent.Request) {
				front.CutAfter(1 << 20)
				r.TimeoutSeconds = 8
			},
			classes: down,
			leaves:  true,
		},
		{
			name: "503",
			arrange: func(_ *testing.T, _ *realStore, front *storetest.Proxy, r *agent.Request) {
				front.FailEvery(1)
				r.TimeoutSeconds = 8
			},
			classes:  down,
			leaves:   true,
			happened: func(front *storetest.Proxy, _ time.Duration) bool { return front.Failed() > 0 },
		},
		{
			name:    "silent",
			arrange: func(_ *testing.T, _ *realStore, front *storetest.Proxy, _ *agent.Request) { front.StallAfter(1 << 20) },
			classes: []agent.ErrorClass{agent.ClassStalled},
			leaves:  true,
		},
		{
			name: "wrong credentials",
			arrange: func(t *testing.T, s *realStore, front *storetest.Proxy, r *agent.Request) {
				r.Store.CredentialsDir = storetest.Secret(t, s.wrong)
				if s.checks != nil {
					guard := httptest.NewServer(s.checks(front))
					t.Cleanup(guard.Close)
					r.Store.Endpoint = guard.URL
				}
			},
			classes: []agent.ErrorClass{agent.ClassStoreDenied},
		},
		{
			name: "no credentials",
			arrange: func(t *testing.T, _ *realStore, _ *storetest.Proxy, r *agent.Request) {
				r.Store.CredentialsDir = t.TempDir()
			},
			classes: []agent.ErrorClass{agent.ClassCredentials},
		},
		{
			name:    "no bucket",
			arrange: func(_ *testing.T, _ *realStore, _ *storetest.Proxy, r *agent.Request) { r.Store.Bucket = "none" },
			classes: []agent.ErrorClass{agent.ClassNoBucket},
		},
		{
			name: "no server",
			arrange: func(_ *testing.T, _ *realStore, _ *storetest.Proxy, r *agent.Request) {
				r.Store.Endpoint = "http://127.0.0.1:1"
			},
			classes: []agent.ErrorClass{agent.ClassStore},
		},
		{
			name: "a response that quotes the request",
			arrange: func(t *testing.T, _ *realStore, _ *storetest.Proxy, r *agent.Request) {
				echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Error(w, fmt.Sprint("no: ", r.Header), http.StatusForbidden)
				}))
				t.Cleanup(echo.Close)
				r.Store.Endpoint = echo.URL
			},
			classes: []agent.ErrorClass{agent.ClassStoreDenied},
		},
	}
}

// databaseSize is more than a part, in MiB.
const databaseSize = 17

// TestStoresThatFail injects each kind of fault into a real server of each kind. The agent
// makes a backup or names the fault. After a fault nothing looks like a backup, nothing is
// left after uploads are aborted, and no message shows a secret.
func TestStoresThatFail(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	fillDatabase(t, member.ClientURL, databaseSize)
	eachRealStore(t, func(t *testing.T, s *realStore) {
		if s.endpoint == "" {
			t.Skip("a volume is not reached over a network")
		}
		for _, fault := range storeFaults() {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				front := storetest.NewFront(t, s.endpoint)
				r := saveTo(s.at(t, front.Endpoint(), s.right), "id", member.ClientURL)
				r.StallTimeoutSeconds = faultStall
				r.Store.Key = strings.ReplaceAll(fault.name, " ", "-")
				key := r.Store.Key
				fault.arrange(t, s, front, r)
				start := time.Now()
				result, said, failed := runAgent(t, agent.CommandSave, encode(t, agent.CommandSave, r))
				mustHideSecrets(t, said)
				class := classOf(result)
				if failed != (class != "") || failed != (len(fault.classes) > 0) || (failed && !slices.Contains(fault.classes, class)) {
					t.Fatalf("got %q, want one of %q: %s", class, fault.classes, said)
				}
				if fault.happened != nil && !fault.happened(front, time.Since(start)) {
					t.Error("nothing was tested")
				}
				front.Heal()
				place := s.at(t, front.Endpoint(), s.right)
				place.Key = key
				want := 0
				if !failed {
					want = 2
				}
				mustHaveBackups(t, s, place, want/2)
				if fault.leaves {
					mustAbortUploads(t, s, place)
				}
				if all := below(t, s, key+"/"); len(all) != want {
					t.Errorf("stored are %v", all)
				}
			})
		}
	})
}

func below(t *testing.T, s *realStore, prefix string) []string {
	t.Helper()
	all, _ := stored(t, s.open(t), prefix)
	return all
}

// mustHaveBackups counts what is visible as a backup, and verifies it.
func mustHaveBackups(t *testing.T, s *realStore, place *agent.Store, want int) {
	t.Helper()
	n := 0
	for _, key := range below(t, s, place.Key+"/") {
		if manifest.IsManifest(key) {
			n++
		}
	}
	if n != want {
		t.Errorf("%d backups are visible, want %d", n, want)
	}
	if n > 0 {
		mustVerify(t, s.open(t), place, map[string]bool{})
	}
}

// runHere runs the agent's command in this process, which is quicker.
func runHere(t *testing.T, command agent.Command, r *agent.Request) (*agent.Result, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "termination-log")
	var out bytes.Buffer
	if err := run(ctx, command, encode(t, command, r), file, "127.0.0.1", &out); err != nil && !errors.Is(err, errNotDone) {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	result, err := agent.DecodeResult(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return result, out.String() + string(raw)
}

// damages are what may become of a stored object.
func damages(raw []byte) map[string][]byte {
	damaged := map[string][]byte{
		"cut by a byte": raw[:len(raw)-1], "cut in half": raw[:len(raw)/2], "cut by the hash": raw[:len(raw)-32], "a byte longer": append(bytes.Clone(raw), 0), "cut to a byte": raw[:1],
	}
	ends := len(raw) - 1
	for _, at := range []int{0, 60, 150, ends / 5, 2 * ends / 5, 3 * ends / 5, 4 * ends / 5, ends} { // 60 and 150 are in the header of what is encrypted
		flipped := bytes.Clone(raw)
		flipped[at] ^= 0x10
		damaged[fmt.Sprintf("flipped at %d of %d", at, len(raw))] = flipped
	}
	return damaged
}

// TestDamagedObjects damages an object in a real server of each kind, with a manifest and
// without. The agent never accepts the damaged object, and writes nothing of it to the file
// that a restore reads. It accepts the object again when it is whole.
func TestDamagedObjects(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	member.Put(50)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	recipients := storetest.Secret(t, map[string]string{"recipients": identity.Recipient().String()})
	identities := storetest.Secret(t, map[string]string{"identities": identity.String()})
	eachRealStore(t, func(t *testing.T, s *realStore) {
		store := s.open(t)
		place := s.at(t, s.endpoint, s.right)
		for name, form := range map[string]struct {
			save  func(*agent.Save)
			naked bool
		}{
			"plain":     {save: func(*agent.Save) {}},
			"encrypted": {save: func(save *agent.Save) { save.Compression, save.RecipientsDir = v1beta2.CompressionZstd, recipients }},
			"naked":     {save: func(*agent.Save) {}, naked: true},
		} {
			r := saveTo(place, name, member.ClientURL)
			form.save(r.Save)
			saved, said := runHere(t, agent.CommandSave, r)
			if saved.Error != nil {
				t.Fatalf("%s: %s", name, said)
			}
			raw, err := objectstore.ReadAll(t.Context(), store, saved.Key, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			if form.naked {
				if err := store.Delete(t.Context(), manifest.LayoutDirectory.ManifestKey(saved.Key)); err != nil {
					t.Fatal(err)
				}
			}
			identitiesOf := ""
			if r.Save.RecipientsDir != "" {
				identitiesOf = identities
			}
			look := func(what string, content []byte, want agent.ErrorClass) {
				t.Helper()
				if err := objectstore.PutBytes(t.Context(), store, saved.Key, content, objectstore.PutOptions{Overwrite: true}); err != nil {
					t.Fatal(err)
				}
				expected := agent.Expected{Key: saved.Key}
				file := filepath.Join(t.TempDir(), "snapshot.db")
				for command, r := range map[agent.Command]*agent.Request{
					agent.CommandVerify: {ID: "v", Store: place, Verify: &agent.Verify{Expected: expected, IdentitiesDir: identitiesOf}},
					agent.CommandFetch:  {ID: "f", Store: place, Fetch: &agent.Fetch{Expected: expected, IdentitiesDir: identitiesOf, File: file}},
				} {
					result, said := runHere(t, command, r)
					if class := classOf(result); class != want || result.Verified != (want == "") || strings.Contains(said, identity.String()) {
						t.Errorf("%s %s, %s: got %q, want %q: %s", command, name, what, class, want, said)
					}
				}
				if left, _ := filepath.Glob(file + "*"); (len(left) == 0) != (want != "") {
					t.Errorf("%s, %s: files %v", name, what, left)
				}
			}
			for what, content := range damages(raw) {
				look(what, content, agent.ClassCorrupt)
			}
			look("whole again", raw, "")
		}
	})
}

func classOf(r *agent.Result) agent.ErrorClass {
	if r.Error == nil {
		return ""
	}
	return r.Error.Class
}
