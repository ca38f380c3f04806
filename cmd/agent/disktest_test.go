// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// TestDiskTest runs the command as a Job does: the result is on the output and in the file that
// Kubernetes reads.
func TestDiskTest(t *testing.T) {
	for name, c := range map[string]struct {
		dir  string
		ends error
	}{
		"a directory":  {dir: t.TempDir()},
		"no directory": {dir: filepath.Join(t.TempDir(), "none"), ends: errNotDone},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "result")
			out := &bytes.Buffer{}
			root := newCommand()
			root.SetOut(out)
			root.SetArgs([]string{string(agent.CommandDiskTest), c.dir, "--writes=10", "--limit=1m", "--result-file=" + file})
			if err := root.ExecuteContext(t.Context()); !errors.Is(err, c.ends) {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			result, err := agent.DecodeDiskTest(raw)
			if err != nil {
				t.Fatal(err)
			}
			if failed := result.Error != ""; failed != (c.ends != nil) || result.Done == failed || (result.Writes == 10) == failed {
				t.Errorf("unexpected %+v", result)
			}
			if lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")); !bytes.Equal(lines[len(lines)-1], raw) {
				t.Errorf("the output is %s, the file %s", out, raw)
			}
		})
	}
}
