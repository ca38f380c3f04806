// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// Layout is how the objects of a backup are named.
type Layout string

// Values of Layout.
const (
	// LayoutDirectory gives each backup a directory of its own below the place:
	//
	//	<key>/v1/<namespace>/<name>-<uid>/<time>-<revision>-<id>/snapshot.db[.zst][.age]
	//	                                                        /manifest.json
	//
	// Names sort by time. Backups of an EtcdCluster are stored like this.
	LayoutDirectory Layout = "Directory"
	// LayoutObject stores at exactly the key and overwrites. A backup of
	// endpoints that is made once is stored like this.
	LayoutObject Layout = "Object"
	// LayoutSeries appends _v<revision>_<time> to the key. A periodic backup of
	// endpoints is stored like this.
	LayoutSeries Layout = "Series"
)

const (
	manifestName   = "manifest.json"
	manifestSuffix = ".manifest.json"
	snapshotName   = "snapshot.db"
	suffixAge      = ".age"
	layoutVersion  = "v1"
	directoryTime  = "20060102T150405Z"
	seriesTime     = "2006-01-02-15:04:05"
	idLength       = 8
)

// Place is where the backups of one owner are stored.
type Place struct {
	Layout Layout
	// Key that the user gave; it may be empty for LayoutDirectory.
	Key   string
	Owner Owner
}

// Prefix is what all keys of the backups of this owner begin with.
func (p Place) Prefix() string {
	switch p.Layout {
	case LayoutDirectory:
		return path.Join(p.Key, layoutVersion, p.Owner.Namespace, p.Owner.Name+"-"+p.Owner.UID) + "/"
	case LayoutSeries:
		return p.Key + "_v"
	default:
		return p.Key
	}
}

// SnapshotKey is the key of the snapshot of one backup. The transfer with this ID
// began at started; compression and encryption are those of a Manifest.
func (p Place) SnapshotKey(id string, started time.Time, revision int64, compression, encryption string) string {
	switch p.Layout {
	case LayoutDirectory:
		name := snapshotName
		if compression == CompressionZstd {
			name += ".zst"
		}
		if encryption == EncryptionAge {
			name += suffixAge
		}
		return p.Prefix() + fmt.Sprintf("%s-%020d-%s/", started.UTC().Format(directoryTime), revision, shortID(id)) + name
	case LayoutSeries:
		return p.Prefix() + fmt.Sprintf("%d_%s", revision, started.UTC().Format(seriesTime))
	default:
		return p.Key
	}
}

// IsNamedEncrypted is true if the name of a stored snapshot, a key or a URI, says that it is
// encrypted. Only LayoutDirectory names it so.
func IsNamedEncrypted(key string) bool { return strings.HasSuffix(key, suffixAge) }

// AttemptPrefix is what the keys of a transfer begin with, whatever revision it got:
// a later attempt finds there what an earlier one has done.
func (p Place) AttemptPrefix(started time.Time) string {
	if p.Layout == LayoutDirectory {
		return p.Prefix() + started.UTC().Format(directoryTime) + "-"
	}
	return p.Prefix()
}

// OfAttempt is true if the key can be of the transfer that began then.
func (p Place) OfAttempt(key string, started time.Time) bool {
	if p.Layout != LayoutSeries {
		return strings.HasPrefix(key, p.AttemptPrefix(started))
	}
	return strings.HasPrefix(key, p.Prefix()) && strings.HasSuffix(strings.TrimSuffix(key, manifestSuffix), "_"+started.UTC().Format(seriesTime))
}

// shortID keeps keys short; what it leaves out only tells transfers of the same
// owner and second apart.
func shortID(id string) string {
	if len(id) > idLength {
		return id[len(id)-idLength:]
	}
	return id
}

// ManifestKey is the key of the manifest that belongs to a snapshot.
func (l Layout) ManifestKey(snapshotKey string) string {
	if l == LayoutDirectory {
		return path.Join(path.Dir(snapshotKey), manifestName)
	}
	return snapshotKey + manifestSuffix
}

// IsManifest is true for the keys of manifests.
func IsManifest(key string) bool {
	return path.Base(key) == manifestName || strings.HasSuffix(key, manifestSuffix)
}

// SnapshotKey is the key of the snapshot that the manifest with this key describes.
func (m *Manifest) SnapshotKey(manifestKey string) string {
	return path.Join(path.Dir(manifestKey), m.Object)
}

// Candidates are the keys at which the manifest may be of a backup that is named by
// its snapshot, by its manifest, or by its directory; the best first.
func Candidates(key string) []string {
	key = strings.Trim(key, "/")
	if IsManifest(key) {
		return []string{key}
	}
	candidates := []string{key + manifestSuffix, path.Join(key, manifestName)}
	if strings.HasPrefix(path.Base(key), snapshotName) {
		candidates = append(candidates, path.Join(path.Dir(key), manifestName))
	}
	return candidates
}

// IsInPlace is true if a manifest with this key is of the place's owner. A manifest
// that lies elsewhere, or has another owner, is never deleted.
func (p Place) IsInPlace(key string, m *Manifest) bool {
	return IsManifest(key) && strings.HasPrefix(key, p.Prefix()) && m.Layout == p.Layout && m.Owner == p.Owner
}

// seriesPattern is what LayoutSeries appends to a key.
var seriesPattern = regexp.MustCompile(`^_v[0-9]+_[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}`)

// IsBelow is true if a manifest is of a backup that was stored at this key: in a directory
// below it, or as one of a series. Another key that only begins with the same letters is
// another location. An empty key is the location of all backups.
func IsBelow(key, manifestKey string) bool {
	rest, found := strings.CutPrefix(manifestKey, key)
	return found && (key == "" || strings.HasPrefix(rest, "/") || seriesPattern.MatchString(rest))
}
