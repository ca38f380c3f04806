// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	memberDir = "member"
	// markerFile in the data directory names the transfer that has made it.
	markerFile = ".restored-from"
	workDir    = ".restoring"
	// dataMode is what etcd wants of a data directory.
	dataMode   = 0o700
	markerMode = 0o600
	// maxToolOutput of what a program says goes into a message, in bytes.
	maxToolOutput = 1000
)

// tools are the programs of etcd's images that restore, the better first: etcdutl
// came with 3.5, and etcdctl does it before.
var tools = []string{"etcdutl", "etcdctl"}

// toolDirs are looked into after PATH, which an image without a shell may not set.
var toolDirs = []string{"/usr/local/bin", "/usr/bin", "/bin", "/"}

// restore makes a data directory of a fetched file. It becomes the data directory in
// one step, when it is complete; one that is there already is never touched. The file goes when the
// data directory is complete: nothing needs the copy any longer.
func (t *run) restore(ctx context.Context) error {
	t.Progress.Begin("Restore", 0)
	r := t.request.Restore
	done, err := isFilled(r.DataDir, t.request.ID)
	if err != nil {
		return err
	}
	if done {
		t.result.AlreadyDone = true
		return ignoreMissing(os.Remove(r.File))
	}
	tool, err := findTool()
	if err != nil {
		return err
	}
	if err := t.checkFile(); err != nil {
		return err
	}
	if err := t.snapshotStatus(ctx, tool); err != nil {
		return err
	}
	work := filepath.Join(r.DataDir, workDir)
	if err := prepare(r.DataDir, work); err != nil {
		return err
	}
	if out, err := runTool(ctx, tool, restoreArgs(r, filepath.Join(work, "data"))); err != nil {
		// Before the room is there again that it has taken.
		err = errors.Join(full(r.DataDir), toolFailed("restore", tool, out, err))
		return errors.Join(err, os.RemoveAll(work))
	}
	if r.Scratch {
		t.result.Verified = true
		return os.RemoveAll(work)
	}
	if err := publish(r.DataDir, filepath.Join(work, "data", memberDir), t.request.ID); err != nil {
		return err
	}
	t.result.Revision += r.RevisionBump
	return errors.Join(os.RemoveAll(work), ignoreMissing(os.Remove(r.File)))
}

// isFilled is true if the transfer of this ID has filled the data directory. Data of another transfer
// is an error.
func isFilled(dataDir, id string) (bool, error) {
	_, err := os.Stat(filepath.Join(dataDir, memberDir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	marker, err := os.ReadFile(filepath.Join(dataDir, markerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if string(marker) != id {
		return false, fmt.Errorf("%s holds data that this restore has not made: %w", dataDir, errInTheWay)
	}
	return true, nil
}

func prepare(dataDir, work string) error {
	if err := os.MkdirAll(dataDir, dataMode); err != nil {
		return err
	}
	// An attempt that was killed may have left half of it.
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	return os.Mkdir(work, dataMode)
}

// publish puts the data in its place. The marker is written first: without data it
// means nothing.
func publish(dataDir, member, id string) error {
	if err := syncTree(member); err != nil {
		return err
	}
	marker := filepath.Join(dataDir, markerFile)
	if err := os.WriteFile(marker, []byte(id), markerMode); err != nil {
		return err
	}
	for _, name := range []string{marker, dataDir} {
		if err := syncDir(name); err != nil {
			return err
		}
	}
	if err := os.Rename(member, filepath.Join(dataDir, memberDir)); err != nil {
		return err
	}
	return syncDir(dataDir)
}

func syncTree(root string) error {
	return filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(name) // files and directories sync alike
	})
}

// restoreArgs are those of etcdutl and of etcdctl.
func restoreArgs(r *agent.Restore, dir string) []string {
	args := []string{"snapshot", "restore", r.File, "--data-dir=" + dir}
	if r.Scratch {
		return args
	}
	args = append(args, "--name="+r.Name, "--initial-cluster="+r.InitialCluster,
		"--initial-cluster-token="+r.InitialClusterToken, "--initial-advertise-peer-urls="+strings.Join(r.PeerURLs, ","))
	if r.RevisionBump > 0 {
		args = append(args, "--bump-revision="+strconv.FormatInt(r.RevisionBump, 10), "--mark-compacted")
	}
	return args
}

// checkFile compares the file with the hash at its end: it may have been damaged since
// it was fetched, and etcd's own programs do not all survive that.
func (t *run) checkFile() error {
	file, err := os.Open(t.request.Restore.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	encoder := snapshot.Encode(t.Progress.counted(file), snapshot.Options{})
	if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{encoder}, make([]byte, copyBuffer)); err != nil {
		return err
	}
	sums, _ := encoder.Sums()
	t.result.SHA256 = sums.SHA256
	return nil
}

// snapshotStatus asks etcd's own program what is in the file; it checks the database
// too.
func (t *run) snapshotStatus(ctx context.Context, tool string) error {
	out, err := runTool(ctx, tool, []string{"snapshot", "status", t.request.Restore.File, "--write-out=json"})
	if isKilled(err) {
		return toolFailed("status", tool, out, err) // that says nothing about the file
	}
	if err != nil {
		return errors.Join(snapshot.ErrCorrupt, toolFailed("status", tool, out, err))
	}
	var status struct {
		Revision  int64   `json:"revision"`
		TotalKey  int64   `json:"totalKey"`
		TotalSize int64   `json:"totalSize"`
		Version   *string `json:"version"`
	}
	if err := json.Unmarshal([]byte(lastLine(out)), &status); err != nil {
		return fmt.Errorf("%s snapshot status printed no JSON: %w", filepath.Base(tool), err)
	}
	t.result.Revision, t.result.Size = status.Revision, status.TotalSize
	if status.Version != nil {
		// Programs before 3.6 tell no version, and count every revision of a key.
		t.result.Keys, t.result.StorageVersion = status.TotalKey, *status.Version
	}
	klog.FromContext(ctx).Info("Restoring", "revision", status.Revision, "keys", status.TotalKey, "size", status.TotalSize, "tool", tool)
	return nil
}

func findTool() (string, error) { return findProgram(tools...) }

// findProgram returns the first of some programs of etcd's image that exists.
func findProgram(names ...string) (string, error) {
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
		for _, dir := range toolDirs {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				return filepath.Join(dir, name), nil
			}
		}
	}
	return "", fmt.Errorf("%w: the image has no %s", errUnsupported, strings.Join(names, " and no "))
}

// runTool returns what the program says on both its outputs if it fails, and on its
// standard output if it does not.
func runTool(ctx context.Context, tool string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// isKilled is true if another process has ended the program, such as the kernel for its memory.
func isKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// walSize is what etcd allocates for its log at once, in bytes.
const walSize = 64 << 20

// full returns an error if a volume has less room than the next file of a restore needs.
// The program of etcd reports a full volume only as text.
func full(dir string) error {
	var volume syscall.Statfs_t
	if err := syscall.Statfs(dir, &volume); err != nil {
		return err
	}
	if free := int64(volume.Bavail) * volume.Bsize; free < walSize {
		return fmt.Errorf("%w: the volume of %s has %d bytes left", syscall.ENOSPC, dir, free)
	}
	return nil
}

func toolFailed(what, tool, out string, err error) error {
	name := filepath.Base(tool)
	if strings.Contains(out, "unknown flag") {
		return fmt.Errorf("%w: the %s of this image knows no revision bump: use a newer version of etcd, or no bump", errUnsupported, name)
	}
	if len(out) > maxToolOutput {
		out = out[len(out)-maxToolOutput:]
	}
	return fmt.Errorf("%s snapshot %s: %w: %s", name, what, err, strings.TrimSpace(out))
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
