// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestKinds: what a response means to a reader of the object, also where its status is that of another error.
func TestKinds(t *testing.T) {
	for name, test := range map[string]struct {
		status        int
		code, message string
		get, remove   error
	}{
		"archive class":         {http.StatusForbidden, "InvalidObjectState", "", objectstore.ErrUnreadable, objectstore.ErrDenied},
		"disabled key":          {http.StatusBadRequest, "KMS.DisabledException", "", objectstore.ErrUnreadable, nil},
		"bucket elsewhere":      {http.StatusMovedPermanently, "PermanentRedirect", "", objectstore.ErrRegion, objectstore.ErrRegion},
		"redirect with no code": {http.StatusMovedPermanently, "", "", objectstore.ErrRegion, objectstore.ErrRegion},
		"signed elsewhere": {
			http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'",
			objectstore.ErrRegion, objectstore.ErrRegion,
		},
		"access key of another form": {
			http.StatusBadRequest, "AuthorizationHeaderMalformed", `the Credential is mal-formed; expecting "YOUR-AKID/YYYYMMDD/REGION/SERVICE/aws4_request".`,
			objectstore.ErrDenied, objectstore.ErrDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				if test.code != "" {
					_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", test.code, test.message)
				}
			}))
			t.Cleanup(server.Close)
			store := open(t, func(c *Config) {
				c.Endpoint, c.CredentialsDir = server.URL, storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
			}, nil)
			_, err := store.Get(t.Context(), "k", 0, -1)
			checkKind(t, err, test.get)
			checkKind(t, store.Delete(t.Context(), "k"), test.remove)
		})
	}
}

func checkKind(t *testing.T, err, want error) {
	t.Helper()
	var e *objectstore.Error
	if !errors.As(err, &e) || !errors.Is(e.Kind, want) {
		t.Errorf("got %v, want the kind %v", err, want)
	}
}
