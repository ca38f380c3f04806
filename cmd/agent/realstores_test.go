// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// bucket is what every store has.
const bucket = "backups"

// realStore is a real server of one kind of store, or a directory.
type realStore struct {
	kind v1beta2.BackupStorageType
	// endpoint of the server; empty for a directory.
	endpoint string
	// right and wrong are the entries of secrets; wrong ones hold canaries too.
	right, wrong map[string]string
	// checks rejects wrong credentials where the server does not.
	checks func(http.Handler) http.Handler
	dir    string
}

// at is what a request says of the store, reached at an endpoint.
func (s *realStore) at(t testing.TB, endpoint string, secret map[string]string) *agent.Store {
	t.Helper()
	place := &agent.Store{Type: s.kind, Bucket: bucket, Key: "k", Endpoint: endpoint, ForcePathStyle: s.kind == v1beta2.BackupStorageTypeS3, VolumeDir: s.dir}
	if secret != nil {
		place.CredentialsDir = storetest.Secret(t, secret)
	}
	if endpoint != "" {
		place.CADir = storeCA(t)
	}
	return place
}

// storeCA is the Secret with the CA of the servers.
func storeCA(t testing.TB) string {
	t.Helper()
	return storetest.Secret(t, map[string]string{caFile: string(storetest.CA(t))})
}

// open opens the store with good credentials, without the agent.
func (s *realStore) open(t testing.TB) objectstore.Store {
	t.Helper()
	store, err := openStore(t.Context(), s.at(t, s.endpoint, s.right), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// eachRealStore runs a test against a store of each kind, at the same time.
func eachRealStore(t *testing.T, test func(*testing.T, *realStore)) {
	for name, start := range map[string]func(testing.TB) *realStore{"S3": realS3, "GCS": realGCS, "ABS": realABS, "OSS": realOSS, "volume": realVolume} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func awsEntries(id string) map[string]string {
	return map[string]string{
		"credentials": "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = " + storetest.SecretKey + "\n",
		"config":      "[default]\nregion = us-east-1\n",
	}
}

func realS3(t testing.TB) *realStore {
	endpoint := storetest.S3(t)
	makeBucket(t, endpoint, bucket)
	return &realStore{
		kind: v1beta2.BackupStorageTypeS3, endpoint: endpoint,
		right: awsEntries(storetest.AccessKey), wrong: awsEntries("SOMEBODY"),
	}
}

func realOSS(t testing.TB) *realStore {
	endpoint, backend := storetest.OSS(t)
	makeBucket(t, backend, bucket)
	entries := func(id string) map[string]string {
		return map[string]string{"accessKeyID": id, "accessKeySecret": storetest.SecretKey}
	}
	return &realStore{
		kind: v1beta2.BackupStorageTypeOSS, endpoint: endpoint,
		right: entries(storetest.AccessKey), wrong: entries("SOMEBODY"),
	}
}

func realGCS(t testing.TB) *realStore {
	endpoint := storetest.GCS(t)
	service, err := storage.NewService(t.Context(), option.WithEndpoint(endpoint+"/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: storetest.Transport(t, nil)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Buckets.Insert("p", &storage.Bucket{Name: bucket}).Do(); err != nil {
		t.Fatal(err)
	}
	return &realStore{
		kind: v1beta2.BackupStorageTypeGCS, endpoint: endpoint,
		right: map[string]string{"access-token": storetest.Token}, wrong: map[string]string{"access-token": storetest.SecretKey},
		checks: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != "Bearer "+storetest.Token {
					http.Error(w, "no: "+got, http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		},
	}
}

func realABS(t testing.TB) *realStore {
	s := &realStore{
		kind: v1beta2.BackupStorageTypeABS, endpoint: storetest.Azure(t),
		right: map[string]string{"storage-account": storetest.Account, "storage-key": storetest.AccountKey},
		wrong: map[string]string{"storage-account": storetest.Account, "storage-key": base64.StdEncoding.EncodeToString([]byte(storetest.SecretKey))},
	}
	if _, err := azureContainer(t, s).Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func azureContainer(t testing.TB, s *realStore) *container.Client {
	t.Helper()
	shared, err := container.NewSharedKeyCredential(storetest.Account, storetest.AccountKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(s.endpoint+"/"+storetest.Account+"/"+bucket, shared, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: storetest.Transport(t, nil)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func realVolume(t testing.TB) *realStore {
	return &realStore{kind: v1beta2.BackupStorageTypePersistentVolumeClaim, dir: t.TempDir()}
}

// saveTo is a request for a backup of a member.
func saveTo(store *agent.Store, id, member string) *agent.Request {
	return &agent.Request{
		ID: id, StallTimeoutSeconds: 30, TimeoutSeconds: 100, Store: store,
		Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{Name: "m0", URL: member}}},
		Save: &agent.Save{Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: "u"}, Started: time.Now()},
	}
}

// stored returns the keys of all objects with a prefix, and of those that are no manifest
// and have none.
func stored(t *testing.T, store objectstore.Store, prefix string) (all, orphans []string) {
	t.Helper()
	complete := map[string]bool{}
	for object, err := range store.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, object.Key)
		if manifest.IsManifest(object.Key) {
			complete[directory(object.Key)] = true
		}
	}
	for _, key := range all {
		if !complete[directory(key)] {
			orphans = append(orphans, key)
		}
	}
	return all, orphans
}

func directory(key string) string { return key[:strings.LastIndexByte(key, '/')+1] }
