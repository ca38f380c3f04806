// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestKindsOfObjects: an archived object is not denied to the credentials, and one under a retention policy is.
func TestKindsOfObjects(t *testing.T) {
	for name, test := range map[string]struct {
		status      int
		code        string
		get, remove error
	}{
		"archive class":    {http.StatusForbidden, "InvalidObjectState", objectstore.ErrUnreadable, objectstore.ErrDenied},
		"disabled key":     {http.StatusConflict, "KMSKeyDisabled", objectstore.ErrUnreadable, nil},
		"retention policy": {http.StatusConflict, "FileImmutable", nil, objectstore.ErrDenied},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", test.code)
		}))
		t.Cleanup(server.Close)
		store := open(t, server.URL, "backups", storetest.AccessKey, nil)
		_, err := store.Get(t.Context(), "k", 0, -1)
		checkKind(t, name+": get", err, test.get)
		checkKind(t, name+": delete", store.Delete(t.Context(), "k"), test.remove)
	}
}

func checkKind(t *testing.T, what string, err, want error) {
	t.Helper()
	var e *objectstore.Error
	if !errors.As(err, &e) || !errors.Is(e.Kind, want) {
		t.Errorf("%s: got %v, want the kind %v", what, err, want)
	}
}
