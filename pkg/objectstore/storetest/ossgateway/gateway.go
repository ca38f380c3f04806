// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ossgateway

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Gateway implements http.Handler.
type Gateway struct {
	backend     *url.URL
	credentials aws.Credentials
	signer      *v4.Signer
	client      http.Client
}

// New returns a gateway to an S3 server. Clients name the same access key.
func New(backend *url.URL, accessKey, secretKey string) *Gateway {
	return &Gateway{
		backend:     backend,
		credentials: aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		signer:      v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
	}
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if authorization := r.Header.Get("Authorization"); !strings.HasPrefix(authorization, "OSS ") && !strings.HasPrefix(authorization, "OSS4-HMAC-SHA256 ") {
		refuse(w, http.StatusForbidden, "AccessDenied")
		return
	} else if !strings.Contains(authorization, g.credentials.AccessKeyID) {
		refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	}
	response, err := g.forward(r)
	if err != nil {
		refuse(w, http.StatusBadGateway, "BadGateway")
		return
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusPreconditionFailed {
		refuse(w, http.StatusConflict, "FileAlreadyExists")
		return
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func (g *Gateway) forward(r *http.Request) (*http.Response, error) {
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
	if err := g.signer.SignHTTP(r.Context(), g.credentials, out, payload, "s3", "us-east-1", time.Now()); err != nil {
		return nil, err
	}
	return g.client.Do(out)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, http.StatusText(status))
}
