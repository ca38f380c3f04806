// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bringback

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keptCopies is how many copies of replaced data stay, with the one that is made now. The one before is there if the
	// file that is brought back turns out to be the wrong one.
	keptCopies = 2
	// keptTime is how long each copy stays at least: a command that fails makes a copy at each attempt.
	keptTime = 24 * time.Hour
	// copyMark is between the name of the data directory and the time of a copy, which has the format copyTime.
	copyMark, copyTime = "-before-", "20060102-150405"
)

// SwapIn replaces a data directory by the one that Fill has made, and keeps the replaced one beside it as
// data-before-TIME. At no moment is there no data directory: a member that started then would begin an
// empty one. Of these copies the newest keptCopies stay, and those of the last keptTime, because each takes as much space as the data. The error matches
// ErrInUse while an etcd runs on the replaced data.
func SwapIn(restored, data string, now time.Time) error {
	before := data + copyMark + now.UTC().Format(copyTime)
	if _, err := os.Stat(restored); err != nil {
		return fmt.Errorf("there is nothing to swap in: %w", err)
	}
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		return os.Rename(restored, data)
	}
	unlock, err := lockDatabase(filepath.Join(data, "member", "snap", "db"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeSuperseded(data, now); err != nil {
		return fmt.Errorf("remove old copies of the data: %w", err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, restored, unix.AT_FDCWD, data, unix.RENAME_EXCHANGE); err == nil {
		return os.Rename(restored, before)
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("exchange %s and %s: %w", restored, data, err)
	}
	// Some network file systems cannot exchange.
	return errors.Join(os.Rename(data, before), os.Rename(restored, data))
}

// removeSuperseded removes the copies that superseded names, the oldest first.
func removeSuperseded(data string, now time.Time) error {
	parent := filepath.Dir(data)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var directories []string
	for _, entry := range entries {
		if entry.IsDir() {
			directories = append(directories, entry.Name())
		}
	}
	for _, name := range superseded(directories, filepath.Base(data), now) {
		if err := os.RemoveAll(filepath.Join(parent, name)); err != nil {
			return err
		}
	}
	return nil
}

// superseded returns the copies of the data directory that need not stay when the next copy is made now, the oldest first. A
// name that no program makes is no copy. A copy that is not before now shows that a clock is or was wrong: then
// the names do not say which copy is the newest, and all stay.
func superseded(directories []string, data string, now time.Time) []string {
	var copies, young []string
	for _, name := range directories {
		stamp, is := strings.CutPrefix(name, data+copyMark)
		if !is {
			continue
		}
		made, err := time.Parse(copyTime, stamp)
		if err != nil || made.Format(copyTime) != stamp {
			continue
		}
		if !made.Before(now.UTC().Truncate(time.Second)) {
			return nil
		}
		copies = append(copies, name)
		if now.Sub(made) < keptTime {
			young = append(young, name)
		}
	}
	slices.Sort(copies) // the format sorts by time
	return copies[:max(0, len(copies)-max(keptCopies-1, len(young)))]
}
