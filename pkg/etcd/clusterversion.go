// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/Masterminds/semver/v3"
)

// maxVersionResponse bounds the response of a member about its versions, in bytes.
const maxVersionResponse = 4 << 10

// ClusterVersion returns the cluster version that one member knows, such as 3.3.0. The leader
// decides it some seconds after the bootstrap member serves; until then the error is
// ErrVersionUndecided. The member asks no other member, so it responds without a quorum.
// The request goes over HTTP, because gRPC does not tell the cluster version before 3.6.
func (c *Client) ClusterVersion(ctx context.Context, e Endpoint) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.pool.config.StatusTimeout)
	defer cancel()
	u, err := url.Parse(e.URL)
	if err != nil {
		return "", fmt.Errorf("endpoint %s: %w", e.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("version").String(), nil)
	if err != nil {
		return "", fmt.Errorf("endpoint %s: %w", e.Name, err)
	}
	client := http.Client{Transport: oneRequest(c.target.TLS, dialAddress(u, e))}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the versions of member %s: %w", e.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	var said struct {
		Cluster string `json:"etcdcluster"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVersionResponse)).Decode(&said); err != nil {
		return "", fmt.Errorf("read the versions of member %s (HTTP status %s): %w", e.Name, response.Status, err)
	}
	if _, err := semver.StrictNewVersion(said.Cluster); err != nil {
		return "", fmt.Errorf("member %s says %q: %w", e.Name, said.Cluster, ErrVersionUndecided)
	}
	return said.Cluster, nil
}

// oneRequest connects to address for one request and keeps nothing open. A proxy of the
// environment must not see the traffic of etcd.
func oneRequest(config *tls.Config, address string) http.RoundTripper {
	if config != nil {
		config = config.Clone()
	}
	return &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   config,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
}
