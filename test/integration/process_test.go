// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is how often a test checks a condition.
const pollInterval = 50 * time.Millisecond

// process is a program that was started here and is ended here, by its own pid.
type process struct {
	command *exec.Cmd
	log     string
	done    chan struct{}
	err     error
}

func startProcess(dir, name, program string, args ...string) (*process, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// It outlives the test that starts it, so no context of a test ends it.
	command := exec.CommandContext(context.Background(), program, args...)
	command.Stdout, command.Stderr = log, log
	// The kernel ends it if this process dies without cleaning up.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	started := &process{command: command, log: path, done: make(chan struct{})}
	go func() {
		started.err = command.Wait()
		close(started.done)
	}()
	return started, nil
}

// stop ends the process with a signal and waits until it has ended.
func (p *process) stop(signal os.Signal, patience time.Duration) error {
	if p == nil {
		return nil
	}
	if err := p.command.Process.Signal(signal); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.done
		return fmt.Errorf("pid %d did not end within %s of %v", p.command.Process.Pid, patience, signal)
	}
}

// tail returns the end of the log, for messages of failed tests.
func (p *process) tail() string {
	const keep = 4000
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(content) > keep {
		content = content[len(content)-keep:]
	}
	return string(content)
}

// waitReady polls a health endpoint until it returns 200 or the process ends.
func (p *process) waitReady(ctx context.Context, url string, trust func(context.Context) ([]byte, error)) error {
	last := errors.New("never asked")
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it ended: %w", p.err)
		default:
		}
		last = askReady(ctx, url, trust)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w (last: %w)\n%s", url, err, last, p.tail())
	}
	return nil
}

// askReady asks a health endpoint once. What it trusts may change between two asks.
func askReady(ctx context.Context, url string, trust func(context.Context) ([]byte, error)) error {
	pem, err := trust(ctx)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// freePort returns a port of the loopback address on which no process listens now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
