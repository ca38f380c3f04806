// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// CommitLog marks every entry of the log of a stopped member as committed, and returns the index of
// the last one. etcd writes to its log what is committed only together with the next entry. So the
// last entries of a member that was killed may be acknowledged although its log does not say so. With
// the members that are left, an election would commit these entries, too. The others may be requests
// whose clients got no response: such requests may succeed. The error matches ErrCorrupt if the log is
// damaged; a last entry that was not written as a whole is left out, as etcd does.
func CommitLog(dir string) (uint64, error) {
	index, err := commitLog(dir)
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(zap.NewNop(), dir) {
		index, err = commitLog(dir)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: the log of etcd cannot be read: %w", ErrCorrupt, err)
	}
	return index, nil
}

func commitLog(dir string) (last uint64, err error) {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, err
	}
	from := &walpb.Snapshot{}
	for _, s := range snapshots {
		if s.GetIndex() >= from.GetIndex() {
			from = s
		}
	}
	w, err := wal.Open(zap.NewNop(), dir, from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	_, state, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	last = max(state.GetCommit(), from.GetIndex())
	if n := len(entries); n > 0 {
		last = max(last, entries[n-1].GetIndex())
	}
	state.Commit = &last
	return last, w.Save(state, nil)
}
