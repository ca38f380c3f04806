// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fielderrors

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// mostProblems is how many fields one response names.
const mostProblems = 30

// Handler wraps the handlers of an API group.
type Handler struct {
	// New returns an object of the type that the body of a request is decoded into; nil if none is known.
	New        func(info *request.RequestInfo) runtime.Object
	Serializer runtime.NegotiatedSerializer
	Version    schema.GroupVersion
	Next       http.Handler
}

// ServeHTTP copies the body of a request that creates or changes an object. If the server rejects
// the request because of fields of the body, the response names them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !ok || r.Body == nil || !isWrite(info, h.Version.Group) || !isRead(media) {
		h.Next.ServeHTTP(w, r)
		return
	}
	into := h.New(info)
	if into == nil {
		h.Next.ServeHTTP(w, r)
		return
	}
	body := &bytes.Buffer{}
	next := r.Clone(r.Context())
	next.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, body), r.Body}
	replace := func() bool {
		err := rejection(find(body.Bytes(), reflect.TypeOf(into)), directive(r), media == string(types.ApplyPatchType))
		if err == nil {
			return false
		}
		// These describe the response that is replaced.
		w.Header().Del("Content-Encoding")
		w.Header().Del("Content-Length")
		responsewriters.ErrorNegotiated(err, h.Serializer, h.Version, w, r)
		return true
	}
	h.Next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&writer{ResponseWriter: w, replace: replace}), next)
}

func isWrite(info *request.RequestInfo, group string) bool {
	return info.IsResourceRequest && info.APIGroup == group && (info.Verb == "create" || info.Verb == "update" || info.Verb == "patch")
}

// isRead is true for bodies that have the form of an object, or of a part of one.
func isRead(media string) bool {
	switch media {
	case "", runtime.ContentTypeJSON, runtime.ContentTypeYAML,
		string(types.ApplyPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType):
		return true
	}
	return false
}

// directive is what the client wants to happen to unknown fields.
func directive(r *http.Request) string {
	if desired := r.URL.Query().Get("fieldValidation"); desired != "" {
		return desired
	}
	return metav1.FieldValidationWarn
}

// rejection returns the error of the problems. It returns nil if the server has rejected the request for
// another reason: unknown fields alone do not make it reject a request, unless it is strict or an apply.
func rejection(problems []problem, directive string, isApply bool) *apierrors.StatusError {
	isStrict := isApply || directive == metav1.FieldValidationStrict
	var details []string
	var causes []metav1.StatusCause
	isReason := false
	for _, p := range problems {
		if p.isStrict && !isStrict && directive == metav1.FieldValidationIgnore {
			continue
		}
		isReason = isReason || isStrict || !p.isStrict
		detail := p.detail
		if !p.isStrict && p.field != "" {
			detail = p.field + ": " + p.detail
		}
		details = append(details, detail)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: p.field, Message: p.detail})
	}
	if !isReason {
		return nil
	}
	if len(details) > mostProblems {
		details, causes = append(details[:mostProblems], "and more"), causes[:mostProblems]
	}
	err := apierrors.NewBadRequest("the object cannot be read: " + strings.Join(details, "; "))
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: causes}
	return err
}

// writer replaces a response that may be about the fields of a body.
type writer struct {
	http.ResponseWriter

	replace  func() bool
	replaced bool
}

var _ responsewriter.UserProvidedDecorator = &writer{}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The error of an apply whose values cannot be decoded
// is an internal one.
func (w *writer) WriteHeader(code int) {
	switch code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		if w.replaced = w.replace(); w.replaced {
			return
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	if w.replaced {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}
