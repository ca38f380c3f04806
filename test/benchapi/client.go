// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// errStatus means that a server rejected a request.
var errStatus = errors.New("the server rejected the request")

// requestPatience is how long a single request may take.
const requestPatience = 2 * time.Minute

// call is one request with an encoded body, so that all servings cost the client the same.
type call struct {
	method, url         string
	contentType, accept string
	body                []byte
}

// newClient returns a client with connections of its own.
func newClient(config *rest.Config) (*http.Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true}}, nil
}

// send makes a request and returns the whole response.
func send(ctx context.Context, client *http.Client, c call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	response, err := open(ctx, client, c)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// open makes a request and returns the response with its body.
func open(ctx context.Context, client *http.Client, c call) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	if c.contentType != "" {
		request.Header.Set("Content-Type", c.contentType)
	}
	if c.accept != "" {
		request.Header.Set("Accept", c.accept)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		const shown = 2000
		excerpt, _ := io.ReadAll(io.LimitReader(response.Body, shown))
		return nil, fmt.Errorf("%w: %s %s: %s: %s", errStatus, c.method, c.url, response.Status, excerpt)
	}
	return response, nil
}

// count makes a request, drops the response and returns its size.
func count(ctx context.Context, client *http.Client, c call) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	response, err := open(ctx, client, c)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// clientSet is the clients of the two users for one server.
type clientSet struct {
	admin, ordinary *http.Client
}
