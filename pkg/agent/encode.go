// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// ErrInvalid is matched by errors about a request or a result that is not well-formed.
var ErrInvalid = errors.New("invalid")

const maxIDLength = 63

// Args returns the arguments of the agent for a command.
func (r *Request) Args(command Command) ([]string, error) {
	if err := r.Validate(command); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	// The kubelet replaces $(NAME) in arguments by a variable of the container, which may be secret. A $ is only in strings.
	raw = bytes.ReplaceAll(raw, []byte("$"), []byte(`\u0024`))
	return []string{string(command), "--" + RequestFlag + "=" + string(raw)}, nil
}

// DecodeRequest reads what Args has written. A field that it does not know is an
// error: it may be one that the transfer depends on.
func DecodeRequest(command Command, raw []byte) (*Request, error) {
	r := &Request{}
	if err := decodeStrictly(raw, r); err != nil {
		return nil, fmt.Errorf("%w request: %w", ErrInvalid, err)
	}
	if err := r.Validate(command); err != nil {
		return nil, err
	}
	return r, nil
}

// RequestIn returns the request in arguments that Args has returned, nil if they hold none. The request may be of another
// release, and nothing is done with it: a field that is unknown is ignored.
func RequestIn(args []string) (*Request, error) {
	for _, arg := range args {
		raw, found := strings.CutPrefix(arg, "--"+RequestFlag+"=")
		if !found {
			continue
		}
		r := &Request{}
		if err := json.Unmarshal([]byte(raw), r); err != nil {
			return nil, fmt.Errorf("%w request: %w", ErrInvalid, err)
		}
		return r, nil
	}
	return nil, nil
}

func decodeStrictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON object")
	}
	return nil
}

// Validate says what is missing or contradicts itself. The error matches ErrInvalid.
func (r *Request) Validate(command Command) error {
	if r.ID == "" || len(r.ID) > maxIDLength {
		return invalid("id", "must have 1 to %d bytes", maxIDLength)
	}
	if r.StallTimeoutSeconds < 0 || r.TimeoutSeconds < 0 || r.ProgressPort < 0 {
		return invalid("stallTimeoutSeconds, timeoutSeconds and progressPort", "must not be negative")
	}
	if err := r.validateSections(command); err != nil {
		return err
	}
	if err := r.validateStore(); err != nil {
		return err
	}
	switch command {
	case CommandSave:
		return r.validateSave()
	case CommandComplete:
		return r.validateComplete()
	case CommandFetch:
		return r.validateFetch()
	case CommandSalvage:
		return r.Salvage.validate()
	case CommandRestore:
		return r.Restore.validate()
	case CommandPrune, CommandAbortUploads:
		return r.validateOwners()
	default:
		return nil
	}
}

// validateSections checks that the sections are those that the command needs.
func (r *Request) validateSections(command Command) error {
	given := map[string]bool{
		"etcd": r.Etcd != nil, "store": r.Store != nil, "save": r.Save != nil, "complete": r.Complete != nil, "verify": r.Verify != nil,
		"fetch": r.Fetch != nil, "salvage": r.Salvage != nil, "restore": r.Restore != nil, "prune": r.Prune != nil, "abortUploads": r.AbortUploads != nil,
	}
	var needed, allowed []string
	switch command {
	case CommandSave:
		needed, allowed = []string{"etcd", "store", "save"}, []string{"prune", "abortUploads"}
	case CommandComplete:
		needed, allowed = []string{"store", "complete"}, []string{"prune", "abortUploads"}
	case CommandVerify:
		needed = []string{"store", "verify"}
	case CommandFetch:
		needed, allowed = []string{"fetch"}, []string{"store", "etcd"}
	case CommandSalvage:
		needed = []string{"salvage"}
	case CommandRestore:
		needed = []string{"restore"}
	case CommandPrune:
		needed = []string{"store", "prune"}
	case CommandAbortUploads:
		needed = []string{"store", "abortUploads"}
	case CommandInstall:
		return invalid("command", "%q takes no request", command)
	default:
		return invalid("command", "%q is unknown", command)
	}
	for _, section := range needed {
		if !given[section] {
			return invalid(section, "must be set for %q", command)
		}
	}
	for section, set := range given {
		if set && !slices.Contains(needed, section) && !slices.Contains(allowed, section) {
			return invalid(section, "may not be set for %q", command)
		}
	}
	return nil
}

func (r *Request) validateStore() error {
	if r.Store == nil {
		return nil
	}
	switch r.Store.Type {
	case v1beta2.BackupStorageTypeS3, v1beta2.BackupStorageTypeABS, v1beta2.BackupStorageTypeGCS, v1beta2.BackupStorageTypeOSS:
	case v1beta2.BackupStorageTypePersistentVolumeClaim:
		if !path.IsAbs(r.Store.VolumeDir) {
			return invalid("store.volumeDir", "must be an absolute path")
		}
	default:
		return invalid("store.type", "%q is unknown", r.Store.Type)
	}
	if r.Store.Bucket == "" {
		return invalid("store.bucket", "must be set")
	}
	return nil
}

func (r *Request) validateSave() error {
	if err := r.validateEtcd(); err != nil {
		return err
	}
	if err := validateOwner("save", r.Save.Layout, r.Save.Owner, r.Store); err != nil {
		return err
	}
	if r.Save.Started.IsZero() {
		return invalid("save.started", "must be set")
	}
	switch r.Save.Compression {
	case "", v1beta2.CompressionNone, v1beta2.CompressionZstd:
	default:
		return invalid("save.compression", "%q is unknown", r.Save.Compression)
	}
	switch r.Save.Verify {
	case "", v1beta2.VerificationHash, v1beta2.VerificationChecksum:
	default:
		return invalid("save.verify", "%q is not Hash or Checksum", r.Save.Verify)
	}
	if r.Save.ManifestFile != "" && (!path.IsAbs(r.Save.ManifestFile) || r.Prune != nil) {
		return invalid("save.manifestFile", "must be an absolute path, without prune: nothing is deleted for what is no backup yet")
	}
	return r.validateOwners()
}

func (r *Request) validateComplete() error {
	if !path.IsAbs(r.Complete.ManifestFile) {
		return invalid("complete.manifestFile", "must be an absolute path")
	}
	if err := validateOwner("complete", r.Complete.Layout, r.Complete.Owner, r.Store); err != nil {
		return err
	}
	return r.validateOwners()
}

func (r *Request) validateEtcd() error {
	if len(r.Etcd.Endpoints) == 0 {
		return invalid("etcd.endpoints", "must name at least one member")
	}
	for _, e := range r.Etcd.Endpoints {
		if e.URL == "" {
			return invalid("etcd.endpoints", "must have URLs")
		}
	}
	return nil
}

func (r *Request) validateOwners() error {
	if r.Prune != nil {
		if r.Prune.Count < 0 || r.Prune.MaxAgeSeconds < 0 {
			return invalid("prune", "count and maxAgeSeconds must not be negative")
		}
		if err := validateOwner("prune", r.Prune.Layout, r.Prune.Owner, r.Store); err != nil {
			return err
		}
	}
	if r.AbortUploads != nil {
		if r.AbortUploads.OlderThanSeconds < 0 {
			return invalid("abortUploads.olderThanSeconds", "must not be negative")
		}
		return validateOwner("abortUploads", r.AbortUploads.Layout, r.AbortUploads.Owner, r.Store)
	}
	return nil
}

func validateOwner(section string, layout manifest.Layout, owner manifest.Owner, store *Store) error {
	switch layout {
	case manifest.LayoutDirectory:
		if owner.Namespace == "" || owner.Name == "" || owner.UID == "" {
			return invalid(section+".owner", "must have namespace, name and uid")
		}
	case manifest.LayoutObject, manifest.LayoutSeries:
		if store.Key == "" {
			return invalid("store.key", "must be set for layout %s", layout)
		}
	default:
		return invalid(section+".layout", "%q is unknown", layout)
	}
	return nil
}

func (r *Request) validateFetch() error {
	if !path.IsAbs(r.Fetch.File) {
		return invalid("fetch.file", "must be an absolute path")
	}
	if dir := r.Fetch.InstallDir; dir != "" && !path.IsAbs(dir) {
		return invalid("fetch.installDir", "must be an absolute path")
	}
	if (r.Store == nil) == (r.Etcd == nil) {
		return invalid("fetch", "needs exactly one of store and etcd")
	}
	if r.Etcd != nil {
		return r.validateEtcd()
	}
	return nil
}

func (s *Salvage) validate() error {
	if !path.IsAbs(s.DataDir) || !path.IsAbs(s.WorkDir) || !path.IsAbs(s.File) {
		return invalid("salvage", "dataDir, workDir and file must be absolute paths")
	}
	return nil
}

func (r *Restore) validate() error {
	switch {
	case !path.IsAbs(r.File) || !path.IsAbs(r.DataDir):
		return invalid("restore", "file and dataDir must be absolute paths")
	case r.RevisionBump < 0:
		return invalid("restore.revisionBump", "must not be negative")
	case r.Scratch:
		return nil
	case r.Name == "" || r.InitialCluster == "" || r.InitialClusterToken == "" || len(r.PeerURLs) == 0:
		return invalid("restore", "needs name, initialCluster, initialClusterToken and peerURLs")
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w request: %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
}
