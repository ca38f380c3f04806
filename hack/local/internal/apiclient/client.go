// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// readTimeout bounds a request that is sent again if it fails, such as one that waits for readiness.
	readTimeout = 10 * time.Second
	// applyTimeout bounds one that is not. A kube-apiserver that has just started on a busy machine has
	// taken more than ten seconds for its first change.
	applyTimeout = time.Minute
)

// Client is a client of one API server.
type Client struct {
	server string
	http   *http.Client
	// read and apply bound requests of these kinds.
	read, apply time.Duration
}

// Files are the credentials of a client.
type Files struct{ CA, Certificate, Key string }

// New returns a client.
func New(server string, files Files) (*Client, error) {
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate in %s", files.CA)
	}
	cert, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the client's certificate: %w", err)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2: true,
	}
	return &Client{server: server, http: &http.Client{Transport: transport}, read: readTimeout, apply: applyTimeout}, nil
}

// StatusError is a response that is not a success.
type StatusError struct {
	Method, Path string
	Code         int
	Body         string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.Path, e.Code, strings.TrimSpace(e.Body))
}

// IsNotFound says whether the object does not exist.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	timeout := c.read
	if method == http.MethodPatch {
		timeout = c.apply
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, &StatusError{Method: method, Path: path, Code: response.StatusCode, Body: string(content)}
	}
	return content, nil
}

// Ready returns nil if the API server is ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Get reads the object at path into object.
func (c *Client) Get(ctx context.Context, path string, object any) error {
	raw, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// Apply makes the object at path what the manifest (YAML or JSON) says.
func (c *Client) Apply(ctx context.Context, path string, manifest []byte) error {
	_, err := c.do(ctx, http.MethodPatch, path+"?fieldManager=etcd-operator-local&force=true", "application/apply-patch+yaml", manifest)
	return err
}
