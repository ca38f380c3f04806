// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestFilesAreCurrent: the committed dashboards are what this program writes.
func TestFilesAreCurrent(t *testing.T) {
	t.Parallel()
	const dir = "../../artifacts/monitoring/dashboards"
	current := map[string]bool{}
	for _, d := range dashboards() {
		file := filepath.Join(dir, d.name+".json")
		current[file] = true
		want, err := d.json()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is outdated; run hack/update-docs.sh", file)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !current[file] {
			t.Errorf("%s is no dashboard of this program", file)
		}
	}
}
