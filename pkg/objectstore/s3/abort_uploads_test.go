// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestAbortUploadsOfOthers: the prefix of one program is that of another program's keys, too. Their
// uploads are in one list.
func TestAbortUploadsOfOthers(t *testing.T) {
	var aborted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			aborted = append(aborted, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(w, `<ListMultipartUploadsResult><Bucket>backups</Bucket>
<Upload><Key>etcd</Key><UploadId>1</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>
<Upload><Key>etcd-postgres/base.tar</Key><UploadId>2</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>
</ListMultipartUploadsResult>`)
	}))
	t.Cleanup(server.Close)
	store := open(t, func(c *Config) {
		c.Endpoint, c.CredentialsDir = server.URL, storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
	}, nil)
	n, err := store.AbortUploads(t.Context(), "etcd", func(key string) bool { return key == "etcd" }, time.Now())
	if n != 1 || err != nil || !slices.Equal(aborted, []string{"/backups/etcd"}) {
		t.Errorf("aborted %d, %v, %q; want that of etcd alone", n, err, aborted)
	}
}
