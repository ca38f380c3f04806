// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

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

// PollInterval is how often a condition is checked.
const PollInterval = 50 * time.Millisecond

// Process is a program that was started here and is ended here, by its own pid.
type Process struct {
	command *exec.Cmd
	log     string
	done    chan struct{}
	err     error
}

// Start starts a program that appends its output to the file NAME.log in dir.
func Start(dir, name, program string, args ...string) (*Process, error) {
	return StartWith(dir, name, nil, program, args...)
}

// StartWith does the same with additional variables of the environment, such as "GOMEMLIMIT=1GiB".
func StartWith(dir, name string, environment []string, program string, args ...string) (*Process, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// It outlives the test that starts it, so no context of a test ends it.
	command := exec.CommandContext(context.Background(), program, args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), environment...)
	// The kernel ends it if this process dies without cleaning up.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	started := &Process{command: command, log: path, done: make(chan struct{})}
	go func() {
		started.err = command.Wait()
		close(started.done)
	}()
	return started, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Log returns the path of the file with the output.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended. Call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Stop ends the process with a signal and waits until it has ended.
func (p *Process) Stop(signal os.Signal, patience time.Duration) error {
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

// Tail returns the end of the log, for messages of failed tests.
func (p *Process) Tail() string {
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

// WaitReady polls a health endpoint until it returns 200 or the process ends.
func (p *Process) WaitReady(ctx context.Context, url string, trust func(context.Context) ([]byte, error)) error {
	last := errors.New("never asked")
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it ended: %w", p.err)
		default:
		}
		last = askReady(ctx, url, trust)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w (last: %w)\n%s", url, err, last, p.Tail())
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

// FreePort returns a port of the loopback address on which no process listens now.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
