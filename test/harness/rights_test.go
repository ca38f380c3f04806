// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRights: a right that is granted and that no request uses is found, and so is an exception for a
// right that is no longer granted.
func TestRights(t *testing.T) {
	t.Parallel()
	granted, err := GrantedRights([]byte(`kind: ClusterRole
metadata: {name: a}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch, delete]}
- {apiGroups: [batch], resources: [jobs/status], verbs: [update]}
---
kind: Role
metadata: {name: b}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, use]}
---
kind: Role
metadata: {name: unbound}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get]}
`), "unbound")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(log, []byte(`{"user":{"username":"me"},"verb":"watch","objectRef":{"resource":"pods"}}
{"user":{"username":"other"},"verb":"delete","objectRef":{"resource":"pods"}}
{"user":{"username":"me"},"verb":"update","objectRef":{"apiGroup":"batch","resource":"jobs","subresource":"status"}}
{"user":{"username":"me"},"verb":"get"}
{"user":{"username":"me"},"verb":"get","objectRef":{"resource":"secrets"`), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := UsedRights(log, "me")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete pods is granted, and no request uses it",
		"get nodes is listed, and no role grants it",
		"get secrets is granted, and no request uses it",
	}
	if got := CompareRights(granted, used, map[string]string{"use secrets": "x", "get nodes": "y"}); !slices.Equal(got, want) {
		t.Errorf("wrong are %q, want %q", got, want)
	}
}
