// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes the data of a file durable, as etcd does it for its log.
func Sync(file *os.File) error { return unix.Fdatasync(int(file.Fd())) }

// allocate gives a file its size on the disk, or only its size where the file system cannot.
func allocate(file *os.File, size int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINTR) {
		return file.Truncate(size)
	}
	return err
}
