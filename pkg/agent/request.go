// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Command is what the agent does, its first argument.
type Command string

// Values of Command. Each but install takes a Request.
const (
	// CommandSave stores a snapshot of a member: needs etcd, store, save; and prune
	// and abortUploads if they are to follow in the same run.
	CommandSave Command = "save"
	// CommandVerify reads a stored backup and checks it: needs store, verify.
	CommandVerify Command = "verify"
	// CommandFetch writes a checked snapshot to a file: needs fetch, and either
	// store or etcd.
	CommandFetch Command = "fetch"
	// CommandSalvage writes a checked snapshot of the volume of a stopped member to a file:
	// needs salvage. It runs in an image of etcd, whose own etcd replays the log.
	CommandSalvage Command = "salvage"
	// CommandRestore makes a data directory from a fetched file: needs restore. It
	// runs in an image of etcd, whose own etcdutl or etcdctl does the work.
	CommandRestore Command = "restore"
	// CommandPrune deletes what the retention lets go: needs store, prune.
	CommandPrune Command = "prune"
	// CommandAbortUploads deletes what interrupted transfers have left: needs store, abortUploads.
	CommandAbortUploads Command = "abort-uploads"
	// CommandComplete makes a backup of a snapshot that CommandSave has stored and that was
	// proved since: needs store, complete; and prune and abortUploads if they are to follow.
	CommandComplete Command = "complete"
	// CommandInstall copies the agent into a directory, its second argument, so that
	// it can run in another image that shares it.
	CommandInstall Command = "install"
)

const (
	// Program is the path of the agent in its own image, and its name in the
	// directory that CommandInstall was given.
	Program = "/agent"
	// RequestFlag carries the Request.
	RequestFlag = "request"
	// ResultFileFlag names where the Result is written, beside standard output.
	// Default: the termination log of the container.
	ResultFileFlag = "result-file"
)

// Where the agent finds what pods mount for it. A Request names the directories, so
// these are only the defaults of all callers.
const (
	CredentialsDir = "/etc/etcd-agent/credentials"
	CADir          = "/etc/etcd-agent/ca"
	EtcdTLSDir     = "/etc/etcd-agent/etcd-tls"
	RecipientsDir  = "/etc/etcd-agent/recipients"
	IdentitiesDir  = "/etc/etcd-agent/identities"
	VolumeDir      = "/var/lib/etcd-agent/volume"
	ProgressPort   = 8090
	ProgressPath   = "/progress"
)

// PublishedEnv is a variable that is empty until clients reach the member whose data directory is filled. From then on it is
// not filled again: it would lose what they have written.
const PublishedEnv = "ETCD_OPERATOR_PUBLISHED"

// FilledDirKey is the key of Request.FilledDir.
const FilledDirKey = "filledDir"

// Request says what to do. Only the sections that the command needs may be set.
type Request struct {
	// ID of the transfer: the same in each attempt, so that a later one finds what an
	// earlier one has done. At most 63 bytes.
	ID string `json:"id"`
	// StallTimeoutSeconds ends an attempt in which no byte moved for so long.
	// Default 300.
	StallTimeoutSeconds int64 `json:"stallTimeoutSeconds,omitempty"`
	// TimeoutSeconds bounds the attempt as a whole. 0: no bound.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// ProgressPort serves ProgressPath while the agent runs. 0: nothing is served.
	ProgressPort int32 `json:"progressPort,omitempty"`
	// FilledDir is the data directory that the transfer fills. When the transfer has filled it, CommandFetch
	// and CommandSalvage do nothing: they use neither the network, nor credentials, nor another volume.
	FilledDir string `json:"filledDir,omitempty"`

	Etcd         *Etcd         `json:"etcd,omitempty"`
	Store        *Store        `json:"store,omitempty"`
	Save         *Save         `json:"save,omitempty"`
	Complete     *Complete     `json:"complete,omitempty"`
	Verify       *Verify       `json:"verify,omitempty"`
	Fetch        *Fetch        `json:"fetch,omitempty"`
	Salvage      *Salvage      `json:"salvage,omitempty"`
	Restore      *Restore      `json:"restore,omitempty"`
	Prune        *Prune        `json:"prune,omitempty"`
	AbortUploads *AbortUploads `json:"abortUploads,omitempty"`
}

// Etcd is the cluster that a snapshot is taken of. Any healthy member serves,
// followers first.
type Etcd struct {
	Endpoints []Endpoint `json:"endpoints"`
	// TLSDir holds etcd-client.crt, etcd-client.key and etcd-client-ca.crt, or
	// tls.crt, tls.key and ca.crt. Needed for https.
	TLSDir string `json:"tlsDir,omitempty"`
}

// Endpoint is where one member listens for clients.
type Endpoint struct {
	// Name of the member, for the result. It may be empty.
	Name string `json:"name,omitempty"`
	URL  string `json:"url"`
	// Address, if not empty, is the host:port that is dialed instead of that in URL.
	Address string `json:"address,omitempty"`
	// MemberID, if not 0, is the ID of the member: a snapshot of any other one is not taken.
	MemberID uint64 `json:"memberID,omitempty,string"`
}

// Store is a place in a store.
type Store struct {
	Type v1beta2.BackupStorageType `json:"type"`
	// Bucket, or container; of a PersistentVolumeClaim its name.
	Bucket string `json:"bucket"`
	// Key in it, as the user gave it.
	Key string `json:"key,omitempty"`

	Endpoint              string `json:"endpoint,omitempty"`
	Region                string `json:"region,omitempty"`
	ForcePathStyle        bool   `json:"forcePathStyle,omitempty"`
	InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify,omitempty"`
	ServerSideEncryption  string `json:"serverSideEncryption,omitempty"`
	KMSKeyID              string `json:"kmsKeyID,omitempty"`
	// StorageClass of the objects that are stored; of ABS the access tier.
	StorageClass string `json:"storageClass,omitempty"`

	// CredentialsDir holds the files of the store's secret. Empty: the identity of
	// the workload.
	CredentialsDir string `json:"credentialsDir,omitempty"`
	// CADir holds the ca.crt that signs the store's certificate. Empty: the public
	// certificate authorities.
	CADir string `json:"caDir,omitempty"`
	// VolumeDir is where the PVC is mounted.
	VolumeDir string `json:"volumeDir,omitempty"`
}

// Save says how a snapshot is stored.
type Save struct {
	Layout manifest.Layout `json:"layout"`
	Owner  manifest.Owner  `json:"owner"`
	// Started is when the transfer began, the same in each attempt.
	Started time.Time `json:"started"`
	// Attempt is the number of the attempt, which may run beside an earlier one on a lost node.
	Attempt int32 `json:"attempt,omitempty"`
	// BackupUID is the UID of the EtcdBackup.
	BackupUID   string              `json:"backupUID,omitempty"`
	Compression v1beta2.Compression `json:"compression,omitempty"`
	// PreRestoreBackup marks what was stored before a restore replaced it. It is never taken
	// for the newest backup of a place that has others.
	PreRestoreBackup bool `json:"preRestoreBackup,omitempty"`
	// Verify is Checksum if the store's own checksum of what it received is enough. A store
	// that returns none is read back, as with any other value.
	Verify v1beta2.Verification `json:"verify,omitempty"`
	// RecipientsDir holds the file "recipients". Empty: not encrypted.
	RecipientsDir string `json:"recipientsDir,omitempty"`
	// ManifestFile, if not empty, takes the manifest in place of the store, so that what is
	// stored is no backup before CommandComplete makes it one.
	ManifestFile string `json:"manifestFile,omitempty"`
}

// Complete says which snapshot becomes a backup, after a restore has proved it.
type Complete struct {
	Layout manifest.Layout `json:"layout"`
	Owner  manifest.Owner  `json:"owner"`
	// ManifestFile is that of Save.
	ManifestFile string `json:"manifestFile"`
}

// Verify says which backup is checked and against what.
type Verify struct {
	Expected `json:",inline"`
	// IdentitiesDir holds the file "identities". Without it only the stored bytes of
	// an encrypted backup are checked.
	IdentitiesDir string `json:"identitiesDir,omitempty"`
}

// Fetch says which backup goes to which file, or a snapshot of a live member does.
type Fetch struct {
	Expected      `json:",inline"`
	IdentitiesDir string `json:"identitiesDir,omitempty"`
	// ManifestFile is that of Save: it names the snapshot, which is no backup yet.
	ManifestFile string `json:"manifestFile,omitempty"`
	// File to write. A file that is there and is whole is not fetched again.
	File string `json:"file"`
	// InstallDir is where the agent copies itself before anything else, as CommandInstall does. Then no container of its
	// own does that, which takes Kubernetes a second. Empty: the agent does not copy itself.
	InstallDir string `json:"installDir,omitempty"`
}

// Expected names a stored backup and says what must be true of it.
type Expected struct {
	// Key of the snapshot, of its manifest or of its directory. Empty: the key of the
	// store, and if that is no backup, the newest one below it, provided that all
	// there are of one cluster.
	Key string `json:"key,omitempty"`
	// ID of the transfer that made the backup, which is below the key. Empty: any.
	ID string `json:"id,omitempty"`
	// SHA256 of the snapshot, if it is known.
	SHA256 string `json:"sha256,omitempty"`
	// TargetVersion of the etcd that will serve the data, such as 3.6.16: a snapshot
	// that it cannot read is rejected. Empty: not checked.
	TargetVersion string `json:"targetVersion,omitempty"`
	// MaxSize of the snapshot in bytes. 0: not checked.
	MaxSize int64 `json:"maxSize,omitempty"`
}

// Salvage says from which data directory of a stopped member a snapshot is made.
type Salvage struct {
	// DataDir is only read.
	DataDir string `json:"dataDir"`
	// WorkDir is for a copy of DataDir, and is removed again.
	WorkDir string `json:"workDir"`
	// File to write. A file that is there is whole, and is not made again.
	File string `json:"file"`
}

// Restore says which data directory is made from a file.
type Restore struct {
	File    string `json:"file"`
	DataDir string `json:"dataDir"`
	// Scratch restores only to prove that it can be done: DataDir is removed again,
	// and the fields below may be empty.
	Scratch bool `json:"scratch,omitempty"`

	Name string `json:"name,omitempty"`
	// InitialCluster, InitialClusterToken and PeerURLs are as in etcd's flags.
	InitialCluster      string   `json:"initialCluster,omitempty"`
	InitialClusterToken string   `json:"initialClusterToken,omitempty"`
	PeerURLs            []string `json:"peerURLs,omitempty"`
	// RevisionBump is added to the revision, and everything before it is marked as
	// compacted. 0: neither.
	RevisionBump int64 `json:"revisionBump,omitempty"`
}

// Prune says which backups of an owner are deleted.
type Prune struct {
	Layout manifest.Layout `json:"layout"`
	Owner  manifest.Owner  `json:"owner"`
	// Count of backups that are kept at most, and how old they may become. 0: no
	// limit. The newest always stays.
	Count         int32 `json:"count,omitempty"`
	MaxAgeSeconds int64 `json:"maxAgeSeconds,omitempty"`
	// BackupUID is the UID of the EtcdBackup: what it has made of earlier clusters of the
	// owner's name is counted and deleted, too.
	BackupUID string `json:"backupUID,omitempty"`
	// Keep are the URIs of backups that are not deleted, because restores read them. A URI may name the snapshot, its
	// manifest, its directory, or a place with backups below it.
	Keep []string `json:"keep,omitempty"`
}

// AbortUploads says which leftovers of an owner are deleted.
type AbortUploads struct {
	Layout manifest.Layout `json:"layout"`
	Owner  manifest.Owner  `json:"owner"`
	// OlderThanSeconds is how old a leftover must be: younger ones may belong to a
	// transfer that runs. Default 86400.
	OlderThanSeconds int64 `json:"olderThanSeconds,omitempty"`
}

// Keeps is true of a backup that the request keeps, whatever the retention says. The key is that of its manifest. A URI
// that names a place keeps everything below it: a restore takes one of these backups, perhaps one that no status tells of.
func (r *Request) Keeps(key string) bool {
	return r.Prune != nil && slices.ContainsFunc(r.Prune.Keep, func(uri string) bool {
		kept, found := strings.CutPrefix(uri, r.Store.URI(""))
		kept = strings.Trim(kept, "/")
		return found && (slices.Contains(manifest.Candidates(kept), key) || manifest.IsBelow(kept, key))
	})
}
