// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestWhatIsAskedOfS3: the region, the encryption and the class that a request names reach the store,
// for objects of one part and of several.
func TestWhatIsAskedOfS3(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	begun := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		query := r.URL.Query()
		w.Header().Set("ETag", `"e"`)
		switch {
		case r.Method == http.MethodPost && query.Has("uploads"):
			_, _ = fmt.Fprint(w, `<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
		case r.Method == http.MethodPost:
			_, _ = fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
			return
		case query.Has("partNumber"):
			return // it is encrypted as the upload is
		}
		_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		mu.Lock()
		defer mu.Unlock()
		begun[r.URL.Path] = strings.Join([]string{
			r.Header.Get("X-Amz-Server-Side-Encryption"), r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"),
			r.Header.Get("X-Amz-Storage-Class"), strings.Split(scope+"///", "/")[2],
		}, " ")
	}))
	defer server.Close()
	store, err := openStore(t.Context(), &agent.Store{
		Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Endpoint: server.URL, Region: "eu-north-7", ForcePathStyle: true, ServerSideEncryption: "aws:kms",
		KMSKeyID: "alias/backups", StorageClass: "STANDARD_IA",
		CredentialsDir: storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey),
	}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for key, size := range map[string]int{"one": 10, "several": objectstore.PartSize + 10} {
		if _, err := store.Put(t.Context(), key, bytes.NewReader(make([]byte, size)), objectstore.PutOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if got := begun["/b/"+key]; got != "aws:kms alias/backups STANDARD_IA eu-north-7" {
			t.Errorf("%s: asked for %q", key, got)
		}
		mu.Unlock()
	}
}
