// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// progressTimeout bounds one request: nothing depends on the response.
	progressTimeout = time.Second
	// maxProgress bounds what is read of a response, in bytes.
	maxProgress = 4 << 10
)

// AgentProgress asks agents over HTTP.
type AgentProgress struct{ client *http.Client }

// NewAgentProgress returns an AgentProgress. It goes to the pods directly, whatever
// proxy the environment names.
func NewAgentProgress() *AgentProgress {
	return &AgentProgress{client: &http.Client{
		Timeout:   progressTimeout,
		Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Of implements Progress.
func (a *AgentProgress) Of(ctx context.Context, podIP string) (*v1beta2.TransferProgress, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, agent.ProgressURL(podIP, agent.ProgressPort), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for progress: %w", err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for progress: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for progress: %s", response.Status)
	}
	var p agent.Progress
	if err := json.NewDecoder(io.LimitReader(response.Body, maxProgress)).Decode(&p); err != nil {
		return nil, fmt.Errorf("read the progress: %w", err)
	}
	if p.Bytes < 0 || p.TotalBytes < 0 {
		return nil, fmt.Errorf("read the progress: %d of %d bytes", p.Bytes, p.TotalBytes)
	}
	return &v1beta2.TransferProgress{Bytes: p.Bytes, TotalBytes: p.TotalBytes}, nil
}
