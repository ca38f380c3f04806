// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// OSS starts a stand-in for Alibaba's store and returns its endpoint: it takes the
// native protocol and passes it on to an S3 server, with which it shares most of its
// words. It knows the access key by name and checks no signature, so it proves the
// calls, and not the signing, of a client.
func OSS(t testing.TB, s3Endpoint string) string {
	t.Helper()
	backend, err := url.Parse(s3Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&ossGateway{backend: backend})
	t.Cleanup(server.Close)
	return server.URL
}

type ossGateway struct {
	backend *url.URL
	client  http.Client
}

// ServeHTTP implements http.Handler.
func (g *ossGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if authorization := r.Header.Get("Authorization"); !strings.HasPrefix(authorization, "OSS ") && !strings.HasPrefix(authorization, "OSS4-HMAC-SHA256 ") {
		ossError(w, http.StatusForbidden, "AccessDenied")
		return
	} else if !strings.Contains(authorization, AccessKey) {
		ossError(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	}
	response, err := g.forward(r)
	if err != nil {
		ossError(w, http.StatusBadGateway, "BadGateway")
		return
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusPreconditionFailed {
		ossError(w, http.StatusConflict, "FileAlreadyExists")
		return
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func (g *ossGateway) forward(r *http.Request) (*http.Response, error) {
	goal := *r.URL
	goal.Scheme, goal.Host = g.backend.Scheme, g.backend.Host
	out, err := http.NewRequestWithContext(r.Context(), r.Method, goal.String(), r.Body)
	if err != nil {
		return nil, err
	}
	out.ContentLength = r.ContentLength
	if out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	for _, name := range []string{"Content-Type", "Range"} {
		if value := r.Header.Get(name); value != "" {
			out.Header.Set(name, value)
		}
	}
	// A part must not carry the condition; the start and the end of an upload do.
	if r.Header.Get("X-Oss-Forbid-Overwrite") == "true" && !r.URL.Query().Has("uploads") {
		out.Header.Set("If-None-Match", "*")
	}
	const payload = "UNSIGNED-PAYLOAD"
	out.Header.Set("X-Amz-Content-Sha256", payload)
	credentials := aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(r.Context(), credentials, out, payload, "s3", "us-east-1", time.Now()); err != nil {
		return nil, err
	}
	return g.client.Do(out)
}

func ossError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, http.StatusText(status))
}
