// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDiskOfAProcessThatHasEnded must not wait until the tracer times out.
func TestDiskOfAProcessThatHasEnded(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("this test needs strace: %v; run hack/packages.sh", err)
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if _, err := FullDisk(t.Context(), ended.Process.Pid); err == nil || time.Since(from) >= attachTimeout {
		t.Errorf("after %v: %v", time.Since(from), err)
	}
}

// TestDisks lets a process write to a disk that is slow or full.
func TestDisks(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("this test needs strace: %v; run hack/packages.sh", err)
	}
	const slow = 300 * time.Millisecond
	for name, test := range map[string]struct {
		fail func(context.Context, int) (*Disk, error)
		// fails is true if a write fails, and takes is how long it takes at least.
		fails bool
		takes time.Duration
	}{
		"slow": {fail: func(ctx context.Context, pid int) (*Disk, error) { return SlowDisk(ctx, pid, slow) }, takes: slow},
		"full": {fail: FullDisk, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			// Each line of the input is one write, and each line of the output its outcome.
			shell := exec.CommandContext(t.Context(), "sh", "-c", `while read -r line; do dd if=/dev/zero of="$0" bs=4k count=1 conv=fsync 2>&1; echo "done $?"; done`, file)
			input, err := shell.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var output bytes.Buffer
			shell.Stdout = &output
			if err := shell.Start(); err != nil {
				t.Fatal(err)
			}
			disk, err := test.fail(t.Context(), shell.Process.Pid)
			if err != nil {
				t.Skipf("this machine does not let a test trace a process: %v", err)
			}
			from := time.Now()
			if _, err := input.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			if err := input.Close(); err != nil {
				t.Fatal(err)
			}
			if err := shell.Wait(); err != nil {
				t.Fatalf("%v: %s", err, &output)
			}
			took := time.Since(from)
			if err := disk.Resume(); err != nil {
				t.Error(err)
			}
			if failed := strings.Contains(output.String(), "No space left"); failed != test.fails || took < test.takes {
				t.Errorf("the write took %v: %s", took, &output)
			}
		})
	}
}
