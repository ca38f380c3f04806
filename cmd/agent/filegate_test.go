// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// filePoint is a moment of a backup on a volume, which first writes the snapshot to a temporary
// file and then the manifest to another.
type filePoint struct {
	file  int    // 1 is the snapshot, 2 the manifest
	event uint32 // of inotify
	size  int64  // of the file, at least, in bytes
}

// filePoints are made, written, closed, and removed once linked to its name, for each
// file. How many writes inotify tells apart depends on how busy the machine is, and the size of
// the file does not.
func filePoints() []filePoint {
	var points []filePoint
	for _, file := range []int{1, 2} {
		points = append(points, filePoint{file: file, event: syscall.IN_CREATE}, filePoint{file: file, event: syscall.IN_MODIFY})
		for size := int64(4 << 20); file == 1 && size < databaseSize<<20; size += 4 << 20 {
			points = append(points, filePoint{file: file, event: syscall.IN_MODIFY, size: size})
		}
		points = append(points,
			filePoint{file: file, event: syscall.IN_CLOSE_WRITE},
			filePoint{file: file, event: syscall.IN_DELETE})
	}
	return points
}

// fileGate watches what happens to the temporary files of a volume, and calls kill at one of
// filePoints.
type fileGate struct {
	dir string

	mu    sync.Mutex
	point filePoint // none if its file is 0
	hit   bool
	files int // how many were made
	kill  func()
}

func (g *fileGate) arm(at int, _ bool, kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.point, g.hit, g.files, g.kill = filePoint{}, false, 0, kill
	if points := filePoints(); at > 0 && at <= len(points) {
		g.point = points[at-1]
	}
}

func (g *fileGate) hasHappened() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hit
}

func newFileGate(t *testing.T, dir string) *fileGate {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	const all = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_CLOSE_WRITE | syscall.IN_DELETE
	if _, err := syscall.InotifyAddWatch(fd, dir, all); err != nil {
		t.Fatal(err)
	}
	g, done := &fileGate{dir: dir}, make(chan struct{})
	go func() {
		defer close(done)
		g.follow(events)
	}()
	t.Cleanup(func() {
		_ = events.Close()
		<-done
	})
	return g
}

func (g *fileGate) follow(events io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return
		}
		for at := 0; at+syscall.SizeofInotifyEvent <= n; {
			event, nameLength := binary.NativeEndian.Uint32(buffer[at+4:]), int(binary.NativeEndian.Uint32(buffer[at+12:]))
			at += syscall.SizeofInotifyEvent
			g.see(event, string(bytes.TrimRight(buffer[at:at+nameLength], "\x00")))
			at += nameLength
		}
	}
}

func (g *fileGate) see(event uint32, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if event == syscall.IN_CREATE {
		g.files++
	}
	if g.hit || g.files != g.point.file || event != g.point.event {
		return
	}
	if g.point.size > 0 {
		if info, err := os.Stat(filepath.Join(g.dir, name)); err != nil || info.Size() < g.point.size {
			return
		}
	}
	g.hit = true
	g.kill()
}
