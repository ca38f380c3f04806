// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ossgateway

import (
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
		reject(w, http.StatusForbidden, "AccessDenied")
		return
	} else if !strings.Contains(authorization, g.credentials.AccessKeyID) {
		reject(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	}
	sum := crc64.New(ecma)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, sum), r.Body}
	response, err := g.forward(r)
	if err != nil {
		reject(w, http.StatusBadGateway, "BadGateway")
		return
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusPreconditionFailed {
		reject(w, http.StatusConflict, "FileAlreadyExists")
		return
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	switch {
	case response.StatusCode != http.StatusOK:
	case r.Method == http.MethodPut && r.ContentLength != 0:
		w.Header().Set(checksum, strconv.FormatUint(sum.Sum64(), 10))
	case r.Method == http.MethodPost && r.URL.Query().Has("uploadId"):
		if whole, err := g.stored(r); err == nil {
			w.Header().Set(checksum, strconv.FormatUint(whole, 10))
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

// checksum is the header with the checksum that the store has computed.
const checksum = "X-Oss-Hash-Crc64ecma"

var ecma = crc64.MakeTable(crc64.ECMA)

// stored returns the checksum of an object as the S3 server has it.
func (g *Gateway) stored(r *http.Request) (uint64, error) {
	whole := r.Clone(r.Context())
	whole.Method, whole.URL.RawQuery, whole.Header, whole.ContentLength = http.MethodGet, "", http.Header{}, 0
	response, err := g.forward(whole)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum := crc64.New(ecma)
	if _, err := io.Copy(sum, response.Body); err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the server responds with %s", response.Status)
	}
	return sum.Sum64(), nil
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

func reject(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, http.StatusText(status))
}
