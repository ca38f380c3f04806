// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse means that another process uses the directory. Without this check etcd would wait for
// that process forever.
var ErrInUse = errors.New("another process uses this directory; stop it, or use another directory")

// lockDirectory locks the directory for this process. The kernel removes the lock when the
// process ends. The lock is that of flock(2), which TryLockFile of etcd does not use: the Job
// that restores the data of the API server takes the same lock with the command flock.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return file, nil
}
