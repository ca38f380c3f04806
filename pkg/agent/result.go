// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// MaxResultSize is how much of a termination message Kubernetes keeps, in bytes.
const MaxResultSize = 4096

// Result is the outcome of a request. Error is nil if and only if it was done.
type Result struct {
	Command  Command   `json:"command"`
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Error    *Error    `json:"error,omitempty"`
	// Warning is about what followed and did not go well, such as pruning. The
	// backup itself is good.
	Warning string `json:"warning,omitempty"`

	// URI and Key of the backup's snapshot.
	URI string `json:"uri,omitempty"`
	Key string `json:"key,omitempty"`
	// Revision of the key space: every write up to it is in the snapshot.
	Revision int64 `json:"revision,omitempty"`
	// EtcdVersion of the member, and the version that the snapshot itself has: that of its
	// storage, or that of the cluster before 3.6. It is empty if etcd had written neither.
	EtcdVersion    string `json:"etcdVersion,omitempty"`
	StorageVersion string `json:"storageVersion,omitempty"`
	// Size in bytes and SHA256 of the snapshot, as etcd sent it.
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// StoredSize in bytes and StoredSHA256 of the stored object.
	StoredSize   int64  `json:"storedSize,omitempty"`
	StoredSHA256 string `json:"storedSHA256,omitempty"`
	// Keys in the snapshot, if they were counted.
	Keys int64 `json:"keys,omitempty"`
	// Member that served the snapshot.
	Member    string `json:"member,omitempty"`
	Encrypted bool   `json:"encrypted,omitempty"`
	// FinishedAt is when the backup that was read had been made.
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// Verified is true if the stored copy was proved good.
	Verified bool `json:"verified,omitempty"`
	// VerifiedBy is how the save proved it: Hash, or Checksum if the store's own checksum
	// was compared and nothing was read back.
	VerifiedBy v1beta2.Verification `json:"verifiedBy,omitempty"`
	// Unconfirmed is true if no quorum confirmed that the member had every write.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// DataDiffers is true if etcd reported that the data of its members differed.
	DataDiffers bool `json:"dataDiffers,omitempty"`
	// RaftIndex up to which the snapshot has the log of etcd.
	RaftIndex int64 `json:"raftIndex,omitempty"`
	// AlreadyDone is true if an earlier attempt had done the work.
	AlreadyDone bool `json:"alreadyDone,omitempty"`
	// Pruned backups, and AbortedUploads: what interrupted transfers had left, that were deleted.
	Pruned         int `json:"pruned,omitempty"`
	AbortedUploads int `json:"abortedUploads,omitempty"`
	// Unproved backups are of another cluster of the same name, and nothing proves that
	// this EtcdBackup has made them: they stay. UnprovedAt says where they are, in at most
	// three places.
	Unproved   int    `json:"unproved,omitempty"`
	UnprovedAt string `json:"unprovedAt,omitempty"`
	// Spared is the URI of the newest backup of the cluster before, which stays although
	// there are more backups than are to be kept.
	Spared string `json:"spared,omitempty"`

	// Bytes that were moved, of TotalBytes if that is known.
	Bytes      int64 `json:"bytes,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
}

// ErrorClass is why a request was not done. It says whether trying again can help.
type ErrorClass string

// Values of ErrorClass.
const (
	// ClassRequest: the request itself is wrong.
	ClassRequest ErrorClass = "InvalidRequest"
	// ClassEtcd: no member could be reached, or none served.
	ClassEtcd ErrorClass = "EtcdUnavailable"
	// ClassEtcdDenied: etcd rejected the certificate or the user.
	ClassEtcdDenied ErrorClass = "EtcdDenied"
	// ClassCredentials: a file of a secret is missing or cannot be used.
	ClassCredentials ErrorClass = "InvalidCredentials"
	// ClassStoreDenied: the store rejected the credentials.
	ClassStoreDenied ErrorClass = "StoreDenied"
	// ClassNoBucket: the bucket does not exist.
	ClassNoBucket ErrorClass = "BucketNotFound"
	// ClassNotFound: there is no such backup.
	ClassNotFound ErrorClass = "BackupNotFound"
	// ClassExists: something else is there already and is not overwritten.
	ClassExists ErrorClass = "AlreadyExists"
	// ClassStore: the store failed or could not be reached.
	ClassStore ErrorClass = "StoreUnavailable"
	// ClassStalled: no byte moved for too long, or the time-out is over.
	ClassStalled ErrorClass = "Stalled"
	// ClassTooSlow: the store took the snapshot so slowly that the database of the member
	// grew too much meanwhile.
	ClassTooSlow ErrorClass = "StoreTooSlow"
	// ClassCorrupt: what was read is not what was written.
	ClassCorrupt ErrorClass = "Corrupt"
	// ClassUnsupported: the target cannot take this backup.
	ClassUnsupported ErrorClass = "Unsupported"
	// ClassNoSpace: a volume is full.
	ClassNoSpace ErrorClass = "NoSpace"
	// ClassCanceled: the agent received a signal to stop.
	ClassCanceled ErrorClass = "Canceled"
	// ClassInternal: anything else.
	ClassInternal ErrorClass = "Internal"
)

// IsRetryable is true if the same request may succeed later.
func (c ErrorClass) IsRetryable() bool {
	switch c {
	case ClassRequest, ClassCorrupt, ClassUnsupported, ClassExists, ClassNotFound:
		return false
	default:
		return true
	}
}

// Error is why a request was not done.
type Error struct {
	Class ErrorClass `json:"class"`
	// Message for a reader. It holds no secret.
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Class, e.Message) }

// Encode returns the result as JSON of at most MaxResultSize bytes: texts that are
// too long are cut, figures never.
func (r *Result) Encode() ([]byte, error) {
	cut := *r
	for limit := 1024; ; limit /= 2 {
		raw, err := json.Marshal(&cut)
		if err != nil {
			return nil, fmt.Errorf("writing the result: %w", err)
		}
		if len(raw) <= MaxResultSize || limit == 0 {
			return raw, nil
		}
		if cut.Error != nil {
			cut.Error = &Error{Class: cut.Error.Class, Message: shorten(cut.Error.Message, limit)}
		}
		cut.Warning = shorten(cut.Warning, limit)
		cut.Member = shorten(cut.Member, limit)
		cut.UnprovedAt = shorten(cut.UnprovedAt, limit)
	}
}

// shorten cuts s to at most limit bytes, between characters. What is cut are texts
// from elsewhere, so what is not UTF-8 goes too.
func shorten(s string, limit int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// DecodeResult reads a termination message. Fields that it does not know are ignored:
// the agent may be newer than the controller. The error matches ErrInvalid.
func DecodeResult(message string) (*Result, error) {
	r := &Result{}
	if err := json.Unmarshal([]byte(message), r); err != nil {
		return nil, fmt.Errorf("%w result: %w", ErrInvalid, err)
	}
	if r.Command == "" || r.Finished.IsZero() {
		return nil, fmt.Errorf("%w result: command and finished must be set", ErrInvalid)
	}
	return r, nil
}

// Progress is what the agent serves while it runs.
type Progress struct {
	ID string `json:"id"`
	// Step is what is done now: Connect, Save, Verify, Fetch, Restore, Prune, AbortUploads.
	Step string `json:"step"`
	// Bytes of TotalBytes; the latter is 0 while it is not known.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
}
