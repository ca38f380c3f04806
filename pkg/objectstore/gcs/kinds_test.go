// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestObjectWhoseKeyIsDisabled: the store has the object. No other request with status 400 is taken for that.
func TestObjectWhoseKeyIsDisabled(t *testing.T) {
	for text, want := range map[string]error{"Cloud KMS key is disabled": objectstore.ErrUnreadable, "Invalid argument": nil} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, text, http.StatusBadRequest)
		}))
		t.Cleanup(server.Close)
		store, err := New(t.Context(), Config{
			Bucket: "b", Endpoint: server.URL, CredentialsDir: storetest.Secret(t, map[string]string{tokenFile: "token"}), Transport: storetest.Transport(t, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Get(t.Context(), "k", 0, -1)
		var e *objectstore.Error
		if !errors.As(err, &e) || !errors.Is(e.Kind, want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestTokenErrorNamesItsSource: a Secret that Google rejects is not called the identity of the workload.
func TestTokenErrorNamesItsSource(t *testing.T) {
	rejecting := &oauth2.RetrieveError{ErrorCode: "invalid_grant"}
	for source, dir := range map[string]string{sourceWorkload: "", sourceSecret: "/credentials"} {
		err := failed("get", "k", &tokenError{source: sourceOf(Config{CredentialsDir: dir}), cause: rejecting})
		if !errors.Is(err, objectstore.ErrDenied) || !strings.HasSuffix(err.Error(), "Google gave no token for "+source+": invalid_grant") {
			t.Errorf("%q: got %v", dir, err)
		}
	}
}
