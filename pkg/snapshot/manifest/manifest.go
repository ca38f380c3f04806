// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"
)

const (
	// FormatVersion of the manifests that are written now.
	FormatVersion = 1
	// MaxSize bounds what is read as a manifest, in bytes.
	MaxSize = 64 << 10
)

// ErrInvalid is matched by the errors of Decode.
var ErrInvalid = errors.New("no manifest of a backup")

// ErrNewer is matched too if a newer program wrote the manifest.
var ErrNewer = errors.New("the manifest was written by a newer version of this program; use that")

// Manifest describes one stored backup. It is stored after the snapshot itself; a
// snapshot of layout Directory that has none is not a backup.
type Manifest struct {
	// FormatVersion is 1.
	FormatVersion int `json:"formatVersion"`
	// ID of the transfer that made the backup.
	ID string `json:"id"`
	// Object is the name of the snapshot, in the place where the manifest is.
	Object string `json:"object"`
	Layout Layout `json:"layout"`
	Owner  Owner  `json:"owner"`
	// BackupUID is the UID of the EtcdBackup that made it. It proves that a backup of an
	// earlier cluster of the same name is of the same Kubernetes cluster.
	BackupUID string `json:"backupUID,omitempty"`

	// ClusterID and MemberID are those of etcd, in hexadecimal.
	ClusterID string `json:"clusterID,omitempty"`
	MemberID  string `json:"memberID,omitempty"`
	// Member is the name or the URL of the member that served the snapshot.
	Member      string `json:"member,omitempty"`
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// StorageVersion is the version that the snapshot itself has: that of its storage, or
	// that of the cluster before etcd 3.6. It is empty if etcd had written neither.
	StorageVersion string `json:"storageVersion,omitempty"`
	// Revision of the key space: every write up to it is in the snapshot.
	Revision int64 `json:"revision"`
	// Keys is the number of keys, if it was counted.
	Keys int64 `json:"keys,omitempty"`

	// Size and SHA256 are of the snapshot as etcd sent it, its own hash at the end
	// included: that is the file that etcdutl restores.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// StoredSize and StoredSHA256 are of the stored object.
	StoredSize   int64  `json:"storedSize"`
	StoredSHA256 string `json:"storedSHA256"`
	// Compression is empty or "zstd", Encryption empty or "age".
	Compression string `json:"compression,omitempty"`
	Encryption  string `json:"encryption,omitempty"`

	// VerifiedBy is how the stored object was proved before this was written. "Hash" or
	// empty: it was read back. "Checksum": the store's own checksum was compared.
	VerifiedBy string `json:"verifiedBy,omitempty"`

	// Unconfirmed is true if no quorum has said that the member had every write that was acknowledged
	// before: the member may have been cut off from the others.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// DataDiffers is true if etcd reported that the data of its members differed (alarm CORRUPT) when the snapshot began: the
	// member may have the wrong data.
	DataDiffers bool `json:"dataDiffers,omitempty"`
	// RaftIndex up to which the member had applied the log when the snapshot began; 0 if that is unknown.
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// PreRestoreBackup is true of what was stored before a restore replaced it: it holds data
	// that a user has replaced.
	PreRestoreBackup bool `json:"preRestoreBackup,omitempty"`

	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// WrittenBy is the version of the program that wrote the backup.
	WrittenBy string `json:"writtenBy,omitempty"`
}

// Values of Compression and Encryption.
const (
	CompressionZstd = "zstd"
	EncryptionAge   = "age"
)

// Owner is what a backup is of. Retention looks only at backups of the same owner.
type Owner struct {
	Namespace string `json:"namespace,omitempty"`
	// Name and UID of the EtcdCluster, or of the EtcdBackup if that names endpoints.
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// Encode returns the stored form.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	return append(raw, '\n'), nil
}

// Decode reads the stored form. Fields that it does not know are ignored, as a later
// minor version may add some. The error matches ErrInvalid.
func Decode(raw []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if m.FormatVersion > FormatVersion {
		return nil, fmt.Errorf("%w: formatVersion %d: %w", ErrInvalid, m.FormatVersion, ErrNewer)
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manifest) validate() error {
	switch {
	case m.FormatVersion != FormatVersion:
		return fmt.Errorf("%w: formatVersion %d is not %d", ErrInvalid, m.FormatVersion, FormatVersion)
	case m.Object == "" || path.Base(m.Object) != m.Object:
		return fmt.Errorf("%w: object %q is not the name of one object", ErrInvalid, m.Object)
	case m.Size <= 0 || m.StoredSize <= 0:
		return fmt.Errorf("%w: size and storedSize must be positive", ErrInvalid)
	case !isSHA256(m.SHA256) || !isSHA256(m.StoredSHA256):
		return fmt.Errorf("%w: sha256 and storedSHA256 must be hexadecimal SHA-256 sums", ErrInvalid)
	case m.Compression != "" && m.Compression != CompressionZstd:
		return fmt.Errorf("%w: compression %q is unknown", ErrInvalid, m.Compression)
	case m.Encryption != "" && m.Encryption != EncryptionAge:
		return fmt.Errorf("%w: encryption %q is unknown", ErrInvalid, m.Encryption)
	case m.FinishedAt.IsZero():
		return fmt.Errorf("%w: finishedAt is missing", ErrInvalid)
	}
	return nil
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}
