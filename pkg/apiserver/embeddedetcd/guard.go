// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
)

const (
	// guardPeriod is how often the free space is read.
	guardPeriod = 5 * time.Second
	// shrinkPeriod is how often a full database is compacted and defragmented.
	shrinkPeriod = time.Minute
	// commandTimeout bounds a change of the alarm, and a compaction.
	commandTimeout = 30 * time.Second
	// snapshotMethod is the request for a snapshot, in gRPC's words.
	snapshotMethod = "/etcdserverpb.Maintenance/Snapshot"
)

// errSnapshotOpen means that the database is not defragmented now.
var errSnapshotOpen = errors.New("the space is given back to the volume once no snapshot is being sent; end the one that is not read")

// space is what the guard decides by, in bytes.
type space struct {
	free, database, quota int64
	// alarm is true while etcd rejects writes.
	alarm bool
}

// command is what the guard does.
type command int

const (
	doNothing command = iota
	raiseAlarm
	shrinkDatabase
	clearAlarm
)

// next returns what the space needs.
//
// etcd raises the alarm NOSPACE itself when the database reaches its quota, but not when its
// volume is full: it ends then, and every start ends the same way. So the guard raises the alarm
// before. Reads and deletions work on. Nothing else clears an alarm of this etcd: no user
// reaches it.
func (s space) next() command {
	switch {
	case !s.alarm && s.free < minFree:
		return raiseAlarm
	case !s.alarm:
		return doNothing
	case s.free >= minFree+minFree/4 && s.database < s.quota-s.quota/16:
		return clearAlarm
	default:
		return shrinkDatabase
	}
}

// guard keeps etcd from filling its volume until the context ends.
func (s *Server) guard(ctx context.Context) {
	defer close(s.guarded)
	ticker := time.NewTicker(guardPeriod)
	defer ticker.Stop()
	var shrunk time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			mayShrink := now.Sub(shrunk) >= shrinkPeriod
			tried, err := s.guardOnce(ctx, mayShrink)
			if tried && !errors.Is(err, errSnapshotOpen) {
				shrunk = now
			}
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot guard the space of the embedded etcd; it is tried again", "period", guardPeriod)
			}
		}
	}
}

// guardOnce reads the space and does what it needs. It is true if it tried to shrink the database.
func (s *Server) guardOnce(ctx context.Context, mayShrink bool) (shrunk bool, err error) {
	state, err := s.space()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	s.full.Store(state.alarm)
	values := []any{"freeBytes", state.free, "databaseBytes", state.database, "quotaBytes", state.quota}
	switch state.next() {
	case raiseAlarm:
		klog.FromContext(ctx).Error(nil, "The volume of the API server's data is full: objects cannot be created or changed. "+
			"Enlarge the volume, or remove other files from it; deletions work. Writes begin again by themselves", values...)
		s.full.Store(true)
		return false, s.setAlarm(ctx, pb.AlarmRequest_ACTIVATE, uint64(s.etcd.Server.MemberID()))
	case clearAlarm:
		klog.FromContext(ctx).Info("There is space for the API server's data again: objects can be created and changed", values...)
		for _, alarm := range s.etcd.Server.Alarms() { // one in a snapshot is of the member that it was taken of
			if err := s.setAlarm(ctx, pb.AlarmRequest_DEACTIVATE, alarm.MemberID); err != nil {
				return false, err
			}
		}
		s.full.Store(false)
		return false, nil
	case shrinkDatabase:
		if !mayShrink {
			return false, nil
		}
		klog.FromContext(ctx).Info("The API server's data is full, so objects cannot be created or changed. "+
			"Removing old versions. If this does not help, delete objects or enlarge the volume", values...)
		return true, s.shrink(ctx)
	default:
		return false, nil
	}
}

// IsFull is true while etcd rejects writes. Send none then: etcd writes to its log even what it
// rejects, and the log needs the space that is left.
func (s *Server) IsFull() bool { return s.full.Load() }

func (s *Server) space() (space, error) {
	free, err := freeBytes(s.etcd.Config().Dir)
	if err != nil {
		return space{}, err
	}
	state := space{free: free, database: s.etcd.Server.Backend().Size(), quota: s.quota}
	for _, alarm := range s.etcd.Server.Alarms() {
		state.alarm = state.alarm || alarm.Alarm == pb.AlarmType_NOSPACE
	}
	return state, nil
}

// holdSnapshots counts the snapshots that are being sent. A defragmentation waits for them, and every read for the
// defragmentation; so neither begins beside the other.
func (s *Server) holdSnapshots(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod == snapshotMethod {
		s.sending.RLock()
		defer s.sending.RUnlock()
	}
	return handle(server, stream)
}

func (s *Server) setAlarm(ctx context.Context, action pb.AlarmRequest_AlarmAction, member uint64) error {
	_, err := s.etcd.Server.Alarm(ctx, &pb.AlarmRequest{Action: action, MemberID: member, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return fmt.Errorf("change the alarm NOSPACE: %w", err)
	}
	return nil
}

// shrink removes every old version, and gives the space back to the volume if that is worth it.
// The API server cannot compact a full etcd, because it writes the revision first.
func (s *Server) shrink(ctx context.Context) error {
	backend := s.etcd.Server.Backend()
	if !s.sending.TryLock() {
		return errSnapshotOpen
	}
	defer s.sending.Unlock()
	_, err := s.etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: s.etcd.Server.KV().Rev(), Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		return fmt.Errorf("compact: %w", err)
	}
	compacted := err == nil
	free, err := freeBytes(s.etcd.Config().Dir)
	if err != nil {
		return err
	}
	// The pages that a compaction frees count as in use until the next write, which may never come:
	// etcd rejects writes. A defragmentation writes a copy beside the database.
	if size, inUse := backend.Size(), backend.SizeInUse(); inUse > size-size/8 && !compacted || inUse > free {
		return nil
	}
	if err := backend.Defrag(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	return nil
}
