// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestAbortUploadsOfAnAccountThatListsNone: that is no error, or every backup would warn of it. What
// else is rejected is one.
func TestAbortUploadsOfAnAccountThatListsNone(t *testing.T) {
	for code, fails := range map[string]bool{"InvalidQueryParameterValue": false, "UnsupportedQueryParameter": false, "InvalidInput": true} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "uncommittedblobs") {
				asked++
			}
			w.Header().Set("X-Ms-Error-Code", code)
			w.WriteHeader(http.StatusBadRequest)
		}))
		t.Cleanup(server.Close)
		n, err := open(t, server.URL, "c", storetest.AccountKey, nil).AbortUploads(t.Context(), "", storetest.Any, time.Now())
		if n != 0 || (err != nil) != fails || asked != 1 {
			t.Errorf("%s: aborted %d, %v; it got %d requests", code, n, err, asked)
		}
	}
}

// emptied is an account of Azure with the blocks of one interrupted upload.
type emptied struct {
	block string
	// taken is true if another program completes the upload before AbortUploads makes a blob
	// of it, and rewritten if another program writes the blob before it is deleted.
	taken, rewritten bool
	calls            []string
}

func (e *emptied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reject := func(status int, code string) {
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
	w.Header().Set("Content-Type", "application/xml")
	switch query := r.URL.Query(); {
	case query.Get("comp") == "list":
		_, _ = fmt.Fprint(w, `<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>k</Name><Properties><Content-Length>0</Content-Length></Properties></Blob></Blobs></EnumerationResults>`)
	case query.Get("comp") == "blocklist" && r.Method == http.MethodGet:
		_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><BlockList><UncommittedBlocks><Block><Name>%s</Name><Size>4</Size></Block></UncommittedBlocks></BlockList>`, e.block)
	case query.Get("comp") == "blocklist" && e.taken && r.Header.Get("If-None-Match") == "*":
		reject(http.StatusConflict, "BlobAlreadyExists")
	case query.Get("comp") == "blocklist":
		e.calls = append(e.calls, "commit "+r.Header.Get("If-None-Match"))
		w.Header().Set("Etag", `"made"`)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodDelete && e.rewritten && r.Header.Get("If-Match") != "":
		reject(http.StatusPreconditionFailed, "ConditionNotMet")
	case r.Method == http.MethodDelete:
		e.calls = append(e.calls, "delete "+r.Header.Get("If-Match"))
		w.WriteHeader(http.StatusAccepted)
	}
}

// TestAbortUploadsTouchesNothingOfOthers: an object that another program has completed or
// written meanwhile is neither replaced nor deleted, and that is no error.
func TestAbortUploadsTouchesNothingOfOthers(t *testing.T) {
	old := time.Now().Add(-48 * time.Hour)
	for name, test := range map[string]struct {
		account emptied
		aborted int
		calls   []string
	}{
		"no other program":        {emptied{}, 1, []string{"commit *", `delete "made"`}},
		"it is completed":         {emptied{taken: true}, 0, nil},
		"it is written once more": {emptied{rewritten: true}, 0, []string{"commit *"}},
	} {
		t.Run(name, func(t *testing.T) {
			account := test.account
			account.block = (&upload{salt: old.UnixNano()}).block(1)
			server := httptest.NewServer(&account)
			t.Cleanup(server.Close)
			n, err := open(t, server.URL, "c", storetest.AccountKey, nil).AbortUploads(t.Context(), "", storetest.Any, time.Now().Add(-24*time.Hour))
			if n != test.aborted || err != nil || !slices.Equal(account.calls, test.calls) {
				t.Errorf("aborted %d, %v; it did %q", n, err, account.calls)
			}
		})
	}
}
