// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestDefaultBody(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, test := range []struct {
		name              string
		info              request.RequestInfo
		body              io.Reader
		want, contentType string
		err               error
	}{
		{"empty", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, strings.NewReader(""), "{}", "application/json", nil},
		{"empty stream", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "defrag"}, io.MultiReader(), "{}", "application/json", nil},
		{"no body", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, nil, "{}", "application/json", nil},
		{"an object", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, strings.NewReader(`{"a":1}`), `{"a":1}`, "any", nil},
		{"one byte", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, strings.NewReader("x"), "x", "any", nil},
		{"broken", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, iotest.ErrReader(broken), "", "any", broken},
		{"a cluster", request.RequestInfo{Verb: "create", Resource: "etcdclusters"}, strings.NewReader(""), "", "any", nil},
		{"a status", request.RequestInfo{Verb: "update", Resource: "etcdclusters", Subresource: "status"}, strings.NewReader(""), "", "any", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			served := false
			handler := withDefaultBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served = true
				got, err := io.ReadAll(r.Body)
				if string(got) != test.want || !errors.Is(err, test.err) || r.Header.Get("Content-Type") != test.contentType {
					t.Errorf("got %q (%s), %v", got, r.Header.Get("Content-Type"), err)
				}
			}))
			r := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), &test.info), http.MethodPost, "/", test.body)
			r.Header.Set("Content-Type", "any")
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if !served {
				t.Error("the request was not passed on")
			}
		})
	}
}

func TestStrictFields(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		info request.RequestInfo
		url  string
		want string
	}{
		{"a restore", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "restore"}, "/?dryRun=All", "dryRun=All&fieldValidation=Strict"},
		{"a recovery", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "recover"}, "/", "fieldValidation=Strict"},
		{"a client that knows better", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "restore"}, "/?fieldValidation=Ignore", "fieldValidation=Ignore"},
		{"a backup", request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}, "/?dryRun=All", "dryRun=All"},
		{"a cluster", request.RequestInfo{Verb: "create", Resource: "etcdclusters"}, "/", ""},
		{"a restore of its own", request.RequestInfo{Verb: "create", Resource: "etcdrestores"}, "/", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := "not served"
			handler := withStrictFields(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RawQuery }))
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), &test.info), http.MethodPost, test.url, nil))
			if got != test.want {
				t.Errorf("the query is %q, want %q", got, test.want)
			}
		})
	}
}

// TestReceived: the object that was sent is kept as it was, and is still there to be decoded.
func TestReceived(t *testing.T) {
	t.Parallel()
	config, err := NewConfig()
	if err != nil {
		t.Fatal(err)
	}
	backup := request.RequestInfo{Verb: "create", Resource: "etcdclusters", Subresource: "backup"}
	for _, test := range []struct{ name, body string }{
		{"an object", `{"spec":{"verify":"Hash"}}`},
		{"no object", "nothing"},
		{"more than the limit", strings.Repeat(" ", 200) + "{}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			served := false
			handler := withReceived(config.Codecs.UniversalDeserializer(), 100, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served = true
				if got, err := io.ReadAll(r.Body); string(got) != test.body || err != nil {
					t.Errorf("the body is %q (%v), want %q", got, err, test.body)
				}
			}))
			r := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), &backup), http.MethodPost, "/", strings.NewReader(test.body))
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if !served {
				t.Error("the request was not passed on")
			}
		})
	}
}
