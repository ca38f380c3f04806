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
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// errStatus means that a server rejected a request.
var errStatus = errors.New("the server rejected the request")

// requestPatience is how long a single request may take.
const requestPatience = 2 * time.Minute

// maxRetries is how often a request is repeated that the server rejects with Retry-After: the number
// of client-go.
const maxRetries = 10

// retries counts the repeated requests.
var retries atomic.Int64

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

// open makes a request and returns the response with its body. It repeats a request that the server
// rejects for now, as client-go does.
func open(ctx context.Context, client *http.Client, c call) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		response, err := attemptOnce(ctx, client, c)
		if err != nil {
			return nil, err
		}
		if response.StatusCode < http.StatusMultipleChoices {
			return response, nil
		}
		rejected := rejection(c, response)
		wait, again := retryAfter(response)
		if !again || attempt == maxRetries {
			return nil, rejected
		}
		retries.Add(1)
		if err := pause(ctx, wait); err != nil {
			return nil, errors.Join(rejected, err)
		}
	}
}

func attemptOnce(ctx context.Context, client *http.Client, c call) (*http.Response, error) {
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
	return client.Do(request)
}

// rejection returns the error of a response, whose body it reads and closes.
func rejection(c call, response *http.Response) error {
	defer response.Body.Close()
	const shown = 2000
	excerpt, err := io.ReadAll(io.LimitReader(response.Body, shown))
	rejected := fmt.Errorf("%w: %s %s: %s: %s", errStatus, c.method, c.url, response.Status, excerpt)
	return errors.Join(rejected, err)
}

// retryAfter returns how long a client waits before it repeats a request, and false if it does not
// repeat the request. A server may name the seconds if it has too many requests or fails.
func retryAfter(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err == nil
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
