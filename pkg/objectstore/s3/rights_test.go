// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// strictBucket is a bucket as AWS documents it for Object Lock, which takes no data without
// a checksum. Its credentials may not list, so a missing object gives 403 instead of 404. They may not delete or abort
// uploads, either.
type strictBucket struct {
	// unconditional is true for a store that has no conditional writes.
	unconditional bool

	mu      sync.Mutex
	objects map[string][]byte
	wrong   []string
}

// ServeHTTP implements http.Handler.
func (b *strictBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, _ := io.ReadAll(r.Body)
	query, key := r.URL.Query(), r.URL.Path
	conditional := r.Header.Get("If-None-Match") == "*"
	reject := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
	}
	sum := md5.Sum(data)
	switch {
	case r.Method == http.MethodHead && b.objects[key] == nil:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Length", fmt.Sprint(len(b.objects[key])))
	case r.Method == http.MethodDelete:
		reject(http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut && r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]):
		b.wrong = append(b.wrong, "no sum with "+r.URL.String())
		reject(http.StatusBadRequest, "InvalidRequest")
	case conditional && b.unconditional:
		reject(http.StatusNotImplemented, "NotImplemented")
	case conditional && b.objects[key] != nil:
		reject(http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut && query.Has("partNumber"):
		b.objects["part"] = append(b.objects["part"], data...)
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodPost && query.Has("uploads"):
		_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPost:
		b.objects[key] = b.objects["part"]
		_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodPut:
		b.objects[key] = data
	}
}

// TestWritingWithoutTheRightToList: an object is stored by credentials that may only write and
// read, with the checksum that Object Lock needs, and never over an existing object.
func TestWritingWithoutTheRightToList(t *testing.T) {
	for _, unconditional := range []bool{false, true} {
		bucket := &strictBucket{unconditional: unconditional, objects: map[string][]byte{}}
		server := httptest.NewServer(bucket)
		t.Cleanup(server.Close)
		store := open(t, func(c *Config) {
			c.Endpoint, c.CredentialsDir = server.URL, storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
		}, nil)
		for key, size := range map[string]int{"small": 10, "large": objectstore.PartSize + 10} {
			put := func(options objectstore.PutOptions) error {
				_, err := store.Put(t.Context(), key, bytes.NewReader(make([]byte, size)), options)
				return err
			}
			err := put(objectstore.PutOptions{})
			if unconditional {
				if !errors.Is(err, objectstore.ErrDenied) || bucket.objects["/backups/"+key] != nil {
					t.Errorf("%s: written blindly: %v", key, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if err := put(objectstore.PutOptions{}); !errors.Is(err, objectstore.ErrExists) {
				t.Errorf("%s: written over: %v", key, err)
			}
			if err := put(objectstore.PutOptions{Overwrite: true}); err != nil {
				t.Errorf("%s: not written over: %v", key, err)
			}
		}
		if len(bucket.wrong) > 0 {
			t.Error(bucket.wrong)
		}
	}
}
