// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "fmt"

// CheckVersion returns why an etcd of version target does not start with a snapshot of etcd from: it reads the storage of
// its own minor version and of the one before. The error is nil if a version is unknown.
func CheckVersion(from, target string) error {
	if err := CheckNotOlder(from, target); err != nil {
		return err
	}
	major, minor, known := minorOf(from)
	_, goal, _ := minorOf(target)
	if known && goal > minor+1 {
		return fmt.Errorf("the snapshot is of etcd %d.%d, and etcd %s takes over only from the minor version before its own: restore it into %d.%d first",
			major, minor, target, major, minor+1)
	}
	return nil
}

// CheckNotOlder returns why an etcd of version target cannot read a snapshot of etcd from, or of a newer version.
func CheckNotOlder(from, target string) error {
	major, minor, known := minorOf(from)
	goalMajor, goalMinor, knownGoal := minorOf(target)
	if known && knownGoal && (major != goalMajor || minor > goalMinor) {
		return fmt.Errorf("the snapshot is of etcd %d.%d, which etcd %s cannot read: restore it into %d.%d or newer", major, minor, target, major, minor)
	}
	return nil
}

func minorOf(version string) (major, minor int, known bool) {
	n, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}
