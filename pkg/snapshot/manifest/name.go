// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Name is what the key of an object of LayoutDirectory says of its backup.
type Name struct {
	// UID of the cluster that the backup is of.
	UID string
	// Dir is the directory of the backup, without a slash at its end.
	Dir string
	// Started is when the transfer began, in whole seconds.
	Started  time.Time
	Revision int64
}

// NamePrefix is the prefix of the keys of all backups of clusters with the owner's name,
// whatever their UIDs. Keys of clusters with longer names may have the same prefix.
func (p Place) NamePrefix() string {
	return path.Join(p.Key, layoutVersion, p.Owner.Namespace, p.Owner.Name+"-")
}

// directoryPattern is the name of the directory of a backup.
var directoryPattern = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z)-([0-9]{20})-.`)

// NameOf returns what the key of an object says; false for a key that is not one of a backup
// of LayoutDirectory below NamePrefix.
func (p Place) NameOf(key string) (Name, bool) {
	rest, below := strings.CutPrefix(key, p.NamePrefix())
	parts := strings.Split(rest, "/")
	if !below || len(parts) != 3 || parts[0] == "" {
		return Name{}, false
	}
	found := directoryPattern.FindStringSubmatch(parts[1])
	if found == nil {
		return Name{}, false
	}
	started, err := time.Parse(directoryTime, found[1])
	if err != nil {
		return Name{}, false
	}
	revision, err := strconv.ParseInt(found[2], 10, 64)
	if err != nil {
		return Name{}, false
	}
	return Name{UID: parts[0], Dir: path.Dir(key), Started: started, Revision: revision}, true
}

// ownDirectory and ownSeries are what SnapshotKey appends to a prefix, and nothing else.
var (
	ownDirectory = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9]{20}-[^/]{1,8}/snapshot\.db(\.zst)?(\.age)?$`)
	ownSeries    = regexp.MustCompile(`^[0-9]+_[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}$`)
)

// IsOwnSnapshot is true for a key that SnapshotKey gives to a backup of this place, whatever
// its transfer. Only such keys are cleaned up: the same bucket holds copies that users
// put beside their backups, and objects of other programs whose keys begin alike.
func (p Place) IsOwnSnapshot(key string) bool {
	rest, found := strings.CutPrefix(key, p.Prefix())
	switch {
	case !found:
		return false
	case p.Layout == LayoutDirectory:
		return ownDirectory.MatchString(rest)
	case p.Layout == LayoutSeries:
		return ownSeries.MatchString(rest)
	default:
		return rest == ""
	}
}

// IsSnapshot is true for the keys of snapshots of LayoutDirectory.
func IsSnapshot(key string) bool { return strings.HasPrefix(path.Base(key), snapshotName) }

// ClusterDir returns the directory of all backups of the cluster that a snapshot of
// LayoutDirectory is of, by its key or its URI; empty for another layout.
func ClusterDir(snapshot string) string {
	if !IsSnapshot(snapshot) {
		return ""
	}
	return path.Dir(path.Dir(snapshot))
}
