// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// replayPoll is the pause between two looks at an etcd that replays its log.
	replayPoll = 100 * time.Millisecond
	// replayTimeout is far more than etcd needs for the largest database.
	replayTimeout = 20 * time.Minute
	// replayName is the name of the member that replays.
	replayName = "salvage"
	// stopSign is what every version of etcd prints when it ends in good order, with all that it has
	// applied in its database.
	stopSign = "shutting down"
	// settling is how long an etcd that has just begun to serve is given until it takes signals.
	settling = time.Second
)

// replay has etcd apply the log of a data directory to its database. With --force-new-cluster it drops
// what is not marked as committed, removes all other members, and serves when everything is applied. It
// listens on loopback only, and stops then.
func replay(ctx context.Context, program, dataDir string) error {
	urls, err := loopbackURLs()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	out := &tail{}
	cmd := exec.CommandContext(ctx, program, "--data-dir="+dataDir, "--name="+replayName, "--force-new-cluster",
		"--listen-client-urls="+urls[0], "--advertise-client-urls="+urls[0], "--listen-peer-urls="+urls[1],
		"--initial-advertise-peer-urls="+urls[1], "--initial-cluster="+replayName+"="+urls[1])
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := awaitServing(ctx, urls[0], ended); err != nil {
		cancel()
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err = <-ended
	if !out.has(stopSign) || ctx.Err() != nil {
		return fmt.Errorf("etcd did not stop in good order: %w: %s", errors.Join(err, ctx.Err()), out)
	}
	return nil // it ends itself with the signal after it has closed everything
}

// awaitServing waits until etcd responds to clients, and takes signals. It does so after the log was
// applied.
func awaitServing(ctx context.Context, url string, ended chan error) error {
	wait := replayPoll
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("etcd ended: %w", errors.Join(errReplayEnded, err))
		case <-ctx.Done():
			return fmt.Errorf("etcd did not serve: %w", errors.Join(ctx.Err(), <-ended))
		case <-time.After(wait):
		}
		if wait == settling {
			return nil
		}
		if isServing(ctx, url) {
			wait = settling
		}
	}
}

var errReplayEnded = errors.New("before it served")

func isServing(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", http.NoBody)
	if err != nil {
		return false
	}
	client := &http.Client{Timeout: headerPatience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// headerPatience is how long one look may take. An etcd that does not serve yet accepts a
// connection and does not respond.
const headerPatience = time.Second

// loopbackURLs returns URLs on two free ports.
func loopbackURLs() ([2]string, error) {
	var urls [2]string
	for i := range urls {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
		if err != nil {
			return urls, err
		}
		defer func() { _ = l.Close() }() // both are taken until then, so that they differ
		urls[i] = "http://" + l.Addr().String()
	}
	return urls, nil
}

// tail keeps the end of what a program prints.
type tail struct {
	mu   sync.Mutex
	text string
}

// tailSize is how much is kept, in bytes.
const tailSize = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text += string(p)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(p), nil
}

func (t *tail) has(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Contains(t.text, text)
}

// String returns what fits into a message.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(t.text)
	for line := range strings.Lines(text) {
		for _, sign := range []string{`"level":"fatal"`, `"level":"panic"`, "panic: ", " C | "} {
			if strings.Contains(line, sign) {
				return strings.TrimSpace(line[:min(len(line), maxToolOutput)]) // the first says why
			}
		}
	}
	return text[max(0, len(text)-maxToolOutput):]
}
