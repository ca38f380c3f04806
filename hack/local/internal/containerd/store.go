// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// StoreDir returns the directory, below parent, of the store that holds exactly
// the images in the given archives, made by a version of containerd: another version may
// store them otherwise.
func StoreDir(parent, version string, archives []string) (string, error) {
	lines := []string{"containerd " + version + "\n"}
	for _, archive := range archives {
		infos, err := image.Inspect(archive)
		if err != nil {
			return "", err
		}
		for _, info := range infos {
			lines = append(lines, strings.Join(info.Refs, ",")+" "+info.ID+"\n")
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return filepath.Join(parent, hex.EncodeToString(sum[:6])), nil
}

// BuildStore makes the store dir from image archives, with a containerd of the directory bin that runs
// just for that, and removes the stores beside it, which are outdated by it.
func BuildStore(ctx context.Context, bin, dir string, archives []string) error {
	work := filepath.Join(filepath.Dir(dir), "building")
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing an unfinished node store: %w", err)
	}
	if err := os.MkdirAll(work, 0o711); err != nil {
		return fmt.Errorf("making the node store: %w", err)
	}
	root := filepath.Join(work, "root")
	if err := fillStore(ctx, bin, work, root, archives); err != nil {
		return fmt.Errorf("making the node store: %w", err)
	}
	if err := os.Rename(root, dir); err != nil {
		return fmt.Errorf("making the node store: %w", err)
	}
	others, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Name() != filepath.Base(dir) {
			if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), other.Name())); err != nil {
				return fmt.Errorf("removing an outdated node store: %w", err)
			}
		}
	}
	return nil
}

func fillStore(ctx context.Context, bin, work, root string, archives []string) (err error) {
	client := Client{Socket: filepath.Join(work, "containerd.sock"), Bin: bin}
	config, err := Config{Root: root, State: filepath.Join(work, "state"), Socket: client.Socket, Bin: bin}.Render()
	if err != nil {
		return err
	}
	configFile := filepath.Join(work, "containerd.toml")
	if err := os.WriteFile(configFile, config, 0o644); err != nil {
		return err
	}
	logFile := filepath.Join(work, "containerd.log")
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()

	// The death signal comes when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A signal ends it below; a context would kill it in the middle of a write.
	daemon := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, daemonName), "--config", configFile)
	daemon.Env = []string{"PATH=" + process.Path}
	daemon.Stdout, daemon.Stderr = log, log
	// Mount namespace: what an interrupted import leaves mounted ends with it.
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: unix.CLONE_NEWNS}
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = daemon.Wait() // how it ends does not matter once the images are in
	}()
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGTERM) // so that it closes its databases
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = daemon.Process.Kill()
			err = errors.Join(err, errors.New("containerd did not end after the import"))
		}
	}()

	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := process.Poll(starting, func() bool { return client.IsReady(starting) }); err != nil {
		return fmt.Errorf("containerd does not respond: %w; its last words:\n%s", err, process.LogTail(logFile, 5))
	}
	for _, archive := range archives {
		if _, err := client.Import(ctx, archive, nil); err != nil {
			return err
		}
	}
	return nil
}

// CloneStore makes a node's runtime directory from a store. Only databases are
// copied: images' files are never written again, so nodes can share them.
func CloneStore(store, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // the node has run before
	}
	next := dir + ".next"
	if err := os.RemoveAll(next); err != nil {
		return fmt.Errorf("removing an unfinished copy of the node store: %w", err)
	}
	err := filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(store, path)
		if err != nil {
			return err
		}
		return cloneEntry(path, filepath.Join(next, relative), entry)
	})
	if err != nil {
		return fmt.Errorf("copying the node store: %w", err)
	}
	return os.Rename(next, dir)
}

func cloneEntry(from, to string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	switch {
	case entry.IsDir():
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		// Not with MkdirAll: the umask must not change it, and /tmp of an image is sticky.
		return os.Chmod(to, info.Mode())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case filepath.Ext(from) == ".db":
		return copyFile(from, to, info.Mode())
	}
	if err := os.Link(from, to); errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK) {
		return copyFile(from, to, info.Mode()) // the cache is on another file system
	} else if err != nil {
		return err
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Chmod(mode); err != nil {
		return err
	}
	return out.Close()
}
