// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// maxQuota is the largest size of a database that the etcd documentation suggests.
	maxQuota = 8 << 30
	// maxLogReserve is the space for the log of etcd: five segments of 64 MB, the one that is
	// written, and the next one, which etcd allocates in advance.
	maxLogReserve = 512 << 20
	// minFree is the free space of the volume below which etcd must take no more writes. etcd
	// ends if it cannot allocate the next segment of its log.
	minFree = 128 << 20
	// growth is how much a database may grow that is larger than the quota of its volume, so that
	// an upgrade of the server does not end the writes at once.
	growth = 64 << 20
)

// volume is the space of the directory of etcd, in bytes.
type volume struct {
	// free is what this process may still use, and used is the size of the files of etcd.
	free, used int64
}

// readVolume reads the space below dir, the directory of etcd.
func readVolume(dir string) (volume, error) {
	free, err := freeBytes(dir)
	if err != nil {
		return volume{}, err
	}
	v := volume{free: free}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &stat)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		const block = 512
		v.used += stat.Blocks * block
		return err
	})
	if err != nil {
		return volume{}, fmt.Errorf("size of %s: %w", dir, err)
	}
	return v, nil
}

// freeBytes returns the free space of the volume of a directory.
func freeBytes(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil // #nosec G115 -- no volume has 2^63 blocks
}

// quota returns how large a database may become on the volume. Half of what the log leaves is
// for the copy that a defragmentation makes. database is its present size.
func (v volume) quota(database int64) int64 {
	capacity := v.free + v.used
	reserve := min(maxLogReserve, capacity/2)
	fits := (capacity - reserve) / 2
	if database > fits {
		fits = min(database+growth, capacity-reserve)
	}
	return max(min(fits, maxQuota), 1<<20)
}

// quotaOf returns the quota of a database in dir.
func quotaOf(dir string) (int64, error) {
	v, err := readVolume(dir)
	if err != nil {
		return 0, err
	}
	var database int64
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	switch {
	case err == nil:
		database = info.Size()
	case !errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("size of the database: %w", err)
	}
	return v.quota(database), nil
}
