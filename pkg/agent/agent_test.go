// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func saveRequest() *Request {
	owner := manifest.Owner{Namespace: "ns", Name: "c", UID: "u"}
	return &Request{
		ID:    "transfer-1",
		Etcd:  &Etcd{Endpoints: []Endpoint{{Name: "c-a", URL: "https://c-a:2379"}}, TLSDir: EtcdTLSDir},
		Store: &Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Key: "k", CredentialsDir: CredentialsDir},
		Save:  &Save{Layout: manifest.LayoutDirectory, Owner: owner, Started: now, Compression: v1beta2.CompressionZstd},
		Prune: &Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 3},
	}
}

func TestArgs(t *testing.T) {
	args, err := saveRequest().Args(CommandSave)
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := strings.CutPrefix(args[1], "--request=")
	if len(args) != 2 || args[0] != "save" || !ok {
		t.Fatalf("got %q", args)
	}
	got, err := DecodeRequest(CommandSave, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saveRequest(), got); diff != "" {
		t.Error(diff)
	}
}

// TestArgsHoldNoVariables: the kubelet replaces $(NAME) in arguments.
func TestArgsHoldNoVariables(t *testing.T) {
	request := saveRequest()
	request.Store.Key = "a/$(AWS_SECRET)/$x"
	args, err := request.Args(CommandSave)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(args, " "), "$") {
		t.Errorf("arguments %q", args)
	}
	if got, err := RequestIn(args); err != nil || got.Store.Key != request.Store.Key {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestDecodeRequestIsStrict(t *testing.T) {
	args, err := saveRequest().Args(CommandSave)
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.TrimPrefix(args[1], "--request=")
	for name, changed := range map[string]string{
		"unknown field":  strings.Replace(raw, `"id"`, `"skipEverything":true,"id"`, 1),
		"unknown nested": strings.Replace(raw, `"bucket"`, `"secretKey":"x","bucket"`, 1),
		"two objects":    raw + "{}",
		"cut":            raw[:len(raw)-1],
		"empty":          "",
	} {
		if _, err := DecodeRequest(CommandSave, []byte(changed)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	fetch := func() *Request {
		return &Request{ID: "i", Store: saveRequest().Store, Fetch: &Fetch{File: "/var/backup/f"}}
	}
	complete := func() *Request {
		r := saveRequest()
		return &Request{ID: "i", Store: r.Store, Complete: &Complete{Layout: r.Save.Layout, Owner: r.Save.Owner, ManifestFile: "/tmp/m"}, Prune: r.Prune}
	}
	restore := func() *Request {
		return &Request{ID: "i", Restore: &Restore{
			File: "/var/backup/f", DataDir: "/var/etcd/data", Name: "n", InitialCluster: "n=http://n:2380",
			InitialClusterToken: "t", PeerURLs: []string{"http://n:2380"},
		}}
	}
	for name, test := range map[string]struct {
		command Command
		request func() *Request
		change  func(*Request)
		field   string // empty: valid
	}{
		"save":                {CommandSave, saveRequest, func(*Request) {}, ""},
		"fetch":               {CommandFetch, fetch, func(*Request) {}, ""},
		"fetch of a member":   {CommandFetch, fetch, func(r *Request) { r.Store, r.Etcd = nil, saveRequest().Etcd }, ""},
		"restore":             {CommandRestore, restore, func(*Request) {}, ""},
		"scratch":             {CommandRestore, restore, func(r *Request) { r.Restore = &Restore{File: "/f", DataDir: "/d", Scratch: true} }, ""},
		"no ID":               {CommandSave, saveRequest, func(r *Request) { r.ID = "" }, "id"},
		"long ID":             {CommandSave, saveRequest, func(r *Request) { r.ID = strings.Repeat("x", 64) }, "id"},
		"unknown command":     {"format", saveRequest, func(*Request) {}, "command"},
		"install":             {CommandInstall, saveRequest, func(*Request) {}, "command"},
		"negative time-out":   {CommandSave, saveRequest, func(r *Request) { r.TimeoutSeconds = -1 }, "timeoutSeconds"},
		"missing section":     {CommandSave, saveRequest, func(r *Request) { r.Store = nil }, "store"},
		"section of another":  {CommandSave, saveRequest, func(r *Request) { r.Restore = &Restore{} }, "restore"},
		"no endpoints":        {CommandSave, saveRequest, func(r *Request) { r.Etcd.Endpoints = nil }, "etcd.endpoints"},
		"no URL":              {CommandSave, saveRequest, func(r *Request) { r.Etcd.Endpoints[0].URL = "" }, "etcd.endpoints"},
		"unknown store":       {CommandSave, saveRequest, func(r *Request) { r.Store.Type = "FTP" }, "store.type"},
		"no bucket":           {CommandSave, saveRequest, func(r *Request) { r.Store.Bucket = "" }, "store.bucket"},
		"PVC without mount":   {CommandSave, saveRequest, func(r *Request) { r.Store.Type = v1beta2.BackupStorageTypePersistentVolumeClaim }, "store.volumeDir"},
		"no owner":            {CommandSave, saveRequest, func(r *Request) { r.Save.Owner.UID = "" }, "save.owner"},
		"no key":              {CommandSave, saveRequest, func(r *Request) { r.Save.Layout, r.Store.Key = manifest.LayoutObject, "" }, "store.key"},
		"unknown layout":      {CommandSave, saveRequest, func(r *Request) { r.Save.Layout = "Flat" }, "save.layout"},
		"no start":            {CommandSave, saveRequest, func(r *Request) { r.Save.Started = time.Time{} }, "save.started"},
		"unknown compression": {CommandSave, saveRequest, func(r *Request) { r.Save.Compression = "Gzip" }, "save.compression"},
		"negative count":      {CommandSave, saveRequest, func(r *Request) { r.Prune.Count = -1 }, "prune"},
		"prune without owner": {CommandSave, saveRequest, func(r *Request) { r.Prune.Owner = manifest.Owner{} }, "prune.owner"},
		"complete":            {CommandComplete, complete, func(*Request) {}, ""},
		"complete no file":    {CommandComplete, complete, func(r *Request) { r.Complete.ManifestFile = "" }, "complete.manifestFile"},
		"complete no owner":   {CommandComplete, complete, func(r *Request) { r.Complete.Owner.Name = "" }, "complete.owner"},
		"unproved and pruned": {CommandSave, saveRequest, func(r *Request) { r.Save.ManifestFile = "/tmp/m" }, "save.manifestFile"},
		"fetch from both":     {CommandFetch, fetch, func(r *Request) { r.Etcd = saveRequest().Etcd }, "fetch"},
		"fetch from neither":  {CommandFetch, fetch, func(r *Request) { r.Store = nil }, "fetch"},
		"relative directory":  {CommandFetch, fetch, func(r *Request) { r.Fetch.InstallDir = "d" }, "fetch.installDir"},
		"relative file":       {CommandFetch, fetch, func(r *Request) { r.Fetch.File = "f" }, "fetch.file"},
		"relative data":       {CommandRestore, restore, func(r *Request) { r.Restore.DataDir = "data" }, "restore"},
		"negative bump":       {CommandRestore, restore, func(r *Request) { r.Restore.RevisionBump = -1 }, "restore.revisionBump"},
		"no token":            {CommandRestore, restore, func(r *Request) { r.Restore.InitialClusterToken = "" }, "restore"},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.request()
			test.change(r)
			err := r.Validate(test.command)
			switch {
			case test.field == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.field != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.field)):
				t.Errorf("got %v, want ErrInvalid about %s", err, test.field)
			}
		})
	}
}

func TestResultFitsInTerminationMessage(t *testing.T) {
	long := strings.Repeat("päng \"\\\x00\xff", 2000)
	r := &Result{
		Command: CommandSave, ID: strings.Repeat("i", 63), Started: now, Finished: now, Warning: long, Member: long,
		Error: &Error{Class: ClassStore, Message: long}, Revision: 1 << 62, Size: 1 << 62, StoredSize: 1 << 62,
		URI: "s3://" + strings.Repeat("k", 1200), Key: strings.Repeat("k", 1200), SHA256: strings.Repeat("a", 64), StoredSHA256: strings.Repeat("b", 64),
	}
	raw, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > MaxResultSize {
		t.Errorf("%d bytes are more than %d", len(raw), MaxResultSize)
	}
	got, err := DecodeResult(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got.Error.Message == "" || got.Error.Class != ClassStore || got.URI != r.URI || got.Revision != r.Revision {
		t.Errorf("what matters was cut: %+v", got)
	}
	if len(r.Error.Message) != len(long) {
		t.Error("Encode changed the result itself")
	}
}

func TestDecodeResult(t *testing.T) {
	if _, err := DecodeResult(`{"command":"save","finished":"2026-03-04T05:06:07Z","newer":true}`); err != nil {
		t.Errorf("a field of a newer agent: %v", err)
	}
	for _, message := range []string{"", "OOMKilled", "{}", `{"command":"save"}`} {
		if _, err := DecodeResult(message); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", message, err)
		}
	}
}

func TestBackupStore(t *testing.T) {
	for name, test := range map[string]struct {
		storageType v1beta2.BackupStorageType
		source      v1beta2.BackupSource
		store       Store
		mounts      []Mount
		uri         string
	}{
		"s3": {
			v1beta2.BackupStorageTypeS3,
			v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{
				Path: "b/d/k", AWSSecret: "aws", Endpoint: "http://s3:7070", ForcePathStyle: true, Region: "r", CASecret: "ca",
				InsecureSkipTLSVerify: true, ServerSideEncryption: "AES256",
			}},
			Store{
				Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Key: "d/k", Endpoint: "http://s3:7070", Region: "r", ForcePathStyle: true,
				InsecureSkipTLSVerify: true, ServerSideEncryption: "AES256", CredentialsDir: CredentialsDir, CADir: CADir,
			},
			[]Mount{
				{Name: "store-credentials", Secret: "aws", Path: CredentialsDir, ReadOnly: true},
				{Name: "store-ca", Secret: "ca", Path: CADir, ReadOnly: true},
			},
			"s3://b/d/k",
		},
		"abs": {
			v1beta2.BackupStorageTypeABS, v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "c/k", ABSSecret: "s"}},
			Store{Type: v1beta2.BackupStorageTypeABS, Bucket: "c", Key: "k", CredentialsDir: CredentialsDir},
			[]Mount{{Name: "store-credentials", Secret: "s", Path: CredentialsDir, ReadOnly: true}}, "abs://c/k",
		},
		"abs with a CA": {
			v1beta2.BackupStorageTypeABS, v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "c/k", ABSSecret: "s", CASecret: "ca"}},
			Store{Type: v1beta2.BackupStorageTypeABS, Bucket: "c", Key: "k", CredentialsDir: CredentialsDir, CADir: CADir},
			[]Mount{
				{Name: "store-credentials", Secret: "s", Path: CredentialsDir, ReadOnly: true},
				{Name: "store-ca", Secret: "ca", Path: CADir, ReadOnly: true},
			}, "abs://c/k",
		},
		"gcs with a CA": {
			v1beta2.BackupStorageTypeGCS, v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k", CASecret: "ca"}},
			Store{Type: v1beta2.BackupStorageTypeGCS, Bucket: "b", Key: "k", CADir: CADir},
			[]Mount{{Name: "store-ca", Secret: "ca", Path: CADir, ReadOnly: true}}, "gs://b/k",
		},
		"oss with a CA": {
			v1beta2.BackupStorageTypeOSS, v1beta2.BackupSource{OSS: &v1beta2.OSSSource{Path: "b/k", OSSSecret: "s", CASecret: "ca"}},
			Store{Type: v1beta2.BackupStorageTypeOSS, Bucket: "b", Key: "k", CredentialsDir: CredentialsDir, CADir: CADir},
			[]Mount{
				{Name: "store-credentials", Secret: "s", Path: CredentialsDir, ReadOnly: true},
				{Name: "store-ca", Secret: "ca", Path: CADir, ReadOnly: true},
			}, "oss://b/k",
		},
		"gcs by identity": {
			v1beta2.BackupStorageTypeGCS, v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k"}},
			Store{Type: v1beta2.BackupStorageTypeGCS, Bucket: "b", Key: "k"}, nil, "gs://b/k",
		},
		"oss": {
			v1beta2.BackupStorageTypeOSS, v1beta2.BackupSource{OSS: &v1beta2.OSSSource{Path: "b/k", OSSSecret: "s", Endpoint: "oss-cn-hangzhou.aliyuncs.com"}},
			Store{Type: v1beta2.BackupStorageTypeOSS, Bucket: "b", Key: "k", Endpoint: "oss-cn-hangzhou.aliyuncs.com", CredentialsDir: CredentialsDir},
			[]Mount{{Name: "store-credentials", Secret: "s", Path: CredentialsDir, ReadOnly: true}}, "oss://b/k",
		},
		"claim": {
			v1beta2.BackupStorageTypePersistentVolumeClaim,
			v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "v", Path: "d"}},
			Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "v", Key: "d", VolumeDir: VolumeDir},
			[]Mount{{Name: "store-volume", PVC: "v", Path: VolumeDir}}, "pvc://v/d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, mounts, err := BackupStore(test.storageType, &test.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.store, store); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.mounts, mounts); diff != "" {
				t.Error(diff)
			}
			if got := store.URI(store.Key); got != test.uri {
				t.Errorf("URI %s, want %s", got, test.uri)
			}
			if key, err := store.KeyOf(test.uri); err != nil || key != store.Key {
				t.Errorf("KeyOf: %q, %v", key, err)
			}
			if _, err := store.KeyOf("s3://another/k"); !errors.Is(err, ErrInvalid) {
				t.Errorf("a URI of another bucket: got %v", err)
			}
		})
	}
	if _, _, err := BackupStore(v1beta2.BackupStorageTypeS3, &v1beta2.BackupSource{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no source: got %v, want ErrInvalid", err)
	}
}

func TestProgressURL(t *testing.T) {
	if got := ProgressURL("10.0.0.1", 8090); got != "http://10.0.0.1:8090/progress" {
		t.Error(got)
	}
	if got := ProgressURL("fd00::1", 8090); got != "http://[fd00::1]:8090/progress" {
		t.Error(got)
	}
}
