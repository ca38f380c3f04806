// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestKindsOfConflicts: Azure responds with 409 to much more than to an object that exists.
func TestKindsOfConflicts(t *testing.T) {
	for code, want := range map[string]struct{ get, remove error }{
		"BlobArchived":             {objectstore.ErrUnreadable, objectstore.ErrExists},
		"BlobBeingRehydrated":      {objectstore.ErrUnreadable, objectstore.ErrExists},
		"BlobImmutableDueToPolicy": {objectstore.ErrExists, objectstore.ErrDenied},
		"BlobAlreadyExists":        {objectstore.ErrExists, objectstore.ErrExists},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Ms-Error-Code", code)
			w.WriteHeader(http.StatusConflict)
		}))
		t.Cleanup(server.Close)
		store := open(t, server.URL, "c", storetest.AccountKey, nil)
		if _, err := store.Get(t.Context(), "k", 0, -1); !errors.Is(err, want.get) {
			t.Errorf("%s: get: got %v, want %v", code, err, want.get)
		}
		if err := store.Delete(t.Context(), "k"); !errors.Is(err, want.remove) {
			t.Errorf("%s: delete: got %v, want %v", code, err, want.remove)
		}
	}
}
