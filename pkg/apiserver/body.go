// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/cluster"
)

// emptyObject is decoded to the defaults of any kind.
const emptyObject = "{}"

// withDefaultBody replaces a missing body of a POST to a subresource of etcdclusters by an empty
// object. The decoder would reject the missing body as invalid JSON.
func withDefaultBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.Verb == "create" && info.Resource == "etcdclusters" && info.Subresource != "" && r.Body != nil {
			r = withBody(r)
		}
		next.ServeHTTP(w, r)
	})
}

// withStrictFields rejects unknown fields in requests to replace data. A misspelt source would
// otherwise be ignored, and an empty request has a meaning of its own. A client that sets
// fieldValidation overrides this.
func withStrictFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.Verb == "create" && info.Resource == "etcdclusters" && (info.Subresource == "restore" || info.Subresource == "recover") {
			r = withQuery(r, "fieldValidation", metav1.FieldValidationStrict)
		}
		next.ServeHTTP(w, r)
	})
}

// withReceived adds the body of a request to etcdclusters/backup, without the defaults of the
// API, to the context of the request. A body that cannot be decoded is ignored here: the server
// decodes it again and returns the error.
func withReceived(decoder runtime.Decoder, limit int64, next http.Handler) http.Handler {
	kind := v1beta2.SchemeGroupVersion.WithKind("EtcdBackup")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "create" || info.Resource != "etcdclusters" || info.Subresource != "backup" || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		body := r.Body
		// The server reads the body again and meets the same error or limit.
		data, _ := io.ReadAll(io.LimitReader(body, limit))
		r = r.Clone(r.Context())
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), body), body}
		received := &v1beta2.EtcdBackup{}
		if _, _, err := decoder.Decode(data, &kind, received); err == nil {
			r = r.WithContext(cluster.WithReceived(r.Context(), received))
		}
		next.ServeHTTP(w, r)
	})
}

// withQuery sets a query parameter that has no value.
func withQuery(r *http.Request, key, value string) *http.Request {
	query := r.URL.Query()
	if query.Has(key) {
		return r
	}
	query.Set(key, value)
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// withBody reads the first byte of the body: the Content-Length of a streaming client does not
// tell that the body is empty.
func withBody(r *http.Request) *http.Request {
	first := make([]byte, 1)
	_, err := io.ReadFull(r.Body, first)
	switch {
	case errors.Is(err, io.EOF):
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(emptyObject)), int64(len(emptyObject))
		r.Header.Set("Content-Type", runtime.ContentTypeJSON)
	case err == nil:
		rest := r.Body
		r = r.Clone(r.Context())
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(first), rest), rest}
	}
	// The server reads the body again and meets any other error.
	return r
}
