// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestFilledWithoutItsSource: the program needs neither store, member nor credentials for a data directory that
// its transfer has filled. For any other one it needs them.
func TestFilledWithoutItsSource(t *testing.T) {
	filled := t.TempDir()
	if err := os.Mkdir(filepath.Join(filled, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filled, ".restored-from"), []byte("transfer"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	fromStore := &agent.Request{
		Store: &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Endpoint: "http://127.0.0.1:1", ForcePathStyle: true, CredentialsDir: "/nonexistent"},
		Fetch: &agent.Fetch{File: file},
	}
	fromMember := &agent.Request{
		Etcd:  &agent.Etcd{Endpoints: []agent.Endpoint{{Name: "m0", URL: "https://127.0.0.1:1"}}, TLSDir: "/nonexistent"},
		Fetch: &agent.Fetch{File: file},
	}
	fromPVC := &agent.Request{Salvage: &agent.Salvage{DataDir: "/nonexistent", WorkDir: filepath.Join(t.TempDir(), "copy"), File: file}}
	for name, test := range map[string]struct {
		command agent.Command
		request *agent.Request
		id, dir string
		done    bool
	}{
		"store":                      {agent.CommandFetch, fromStore, "transfer", filled, true},
		"member":                     {agent.CommandFetch, fromMember, "transfer", filled, true},
		"PVC":                        {agent.CommandSalvage, fromPVC, "transfer", filled, true},
		"store, of another transfer": {agent.CommandFetch, fromStore, "other", filled, false},
		"member, an empty dir":       {agent.CommandFetch, fromMember, "transfer", t.TempDir(), false},
		"PVC, no dir":                {agent.CommandSalvage, fromPVC, "transfer", filepath.Join(filled, "none"), false},
		"store, no dir is named":     {agent.CommandFetch, fromStore, "transfer", "", false},
		"member, of another member":  {agent.CommandFetch, fromMember, "transfer-2", filled, false},
	} {
		r := *test.request
		r.ID, r.FilledDir = test.id, test.dir
		result, said, failed := runAgent(t, test.command, encode(t, test.command, &r))
		if failed == test.done || result.AlreadyDone != test.done || (result.Error == nil) != test.done {
			t.Errorf("%s: failed %t, %+v: %s", name, failed, result, said)
		}
	}
}

// TestPublishedMemberIsNotFilledAgain: the backup in the place of what clients have written since would be a loss without an error.
func TestPublishedMemberIsNotFilledAgain(t *testing.T) {
	request := &agent.Request{
		ID: "transfer", FilledDir: t.TempDir(),
		Salvage: &agent.Salvage{DataDir: "/nonexistent", WorkDir: filepath.Join(t.TempDir(), "copy"), File: filepath.Join(t.TempDir(), "snapshot.db")},
	}
	for published, want := range map[string]bool{"": false, "c": true} {
		t.Setenv(agent.PublishedEnv, published)
		result, _, _ := runAgent(t, agent.CommandSalvage, encode(t, agent.CommandSalvage, request))
		if result.Error == nil || strings.Contains(result.Error.Message, "clients have written") != want {
			t.Errorf("published in %q: %+v", published, result.Error)
		}
	}
}
