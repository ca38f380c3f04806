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

// emptyObject is what is decoded to the defaults of any kind.
const emptyObject = "{}"

// withDefaultBody lets a request for an operation on a cluster have no body at all. It
// means what an empty object means, where the decoder would only say that it is no JSON.
func withDefaultBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.Verb == "create" && info.Resource == "etcdclusters" && info.Subresource != "" && r.Body != nil {
			r = withBody(r)
		}
		next.ServeHTTP(w, r)
	})
}

// withStrictFields has a request that replaces data refused if it names a field that there
// is not: an empty request means something, too, and a source that is misspelt would be
// as good as none. A client that says how fields are checked has its way.
func withStrictFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.Verb == "create" && info.Resource == "etcdclusters" && (info.Subresource == "restore" || info.Subresource == "recover") {
			r = withQuery(r, "fieldValidation", metav1.FieldValidationStrict)
		}
		next.ServeHTTP(w, r)
	})
}

// withReceived keeps what a request to back a cluster up has sent beside the object that is
// decoded from it, which has the defaults of the API. What cannot be decoded is left to the
// decoder of the server, which says why.
func withReceived(decoder runtime.Decoder, limit int64, next http.Handler) http.Handler {
	kind := v1beta2.SchemeGroupVersion.WithKind("EtcdBackup")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "create" || info.Resource != "etcdclusters" || info.Subresource != "backup" || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		body := r.Body
		// An error, and what is beyond the limit, comes again when the body is read.
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

// withQuery gives a parameter a value if it has none.
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

// withBody looks at the first byte: a client that streams does not say that nothing
// will come.
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
	// Any other error comes again when the body is read.
	return r
}
