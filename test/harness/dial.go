// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forwardTimeout bounds one attempt to connect through a port-forward, which takes as long
// as kubectl needs to start.
const forwardTimeout = 5 * time.Second

// DialOptions let a client of etcd connect to the addresses of pods, and try again quickly: a
// test must not wait for a back-off when a member is there.
func (e *Environment) DialOptions() []grpc.DialOption {
	if e.IsLocal() {
		return dialDirectly(dialTimeout)
	}
	return append(dialDirectly(forwardTimeout), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return e.Dial(ctx, "tcp", address)
	}))
}

// dialDirectly lets a client connect to addresses that this machine reaches.
func dialDirectly(timeout time.Duration) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: PollInterval, Multiplier: 1, MaxDelay: PollInterval},
		MinConnectTimeout: timeout,
	})}
}

// Dial connects to the address of a pod, as net.Dialer does. This machine reaches the pods of
// the local Kubernetes itself; to those of any other cluster it goes through `kubectl
// port-forward`.
func (e *Environment) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var direct net.Dialer
	if e.IsLocal() {
		return direct.DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pod, err := e.podAt(ctx, host)
	if err != nil {
		return nil, err
	}
	f := e.forwards.to(e, pod, port)
	select {
	case <-f.ready:
	case <-f.ended:
		return nil, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return direct.DialContext(ctx, "tcp", f.address)
}

// podAt returns the pod that has an address.
func (e *Environment) podAt(ctx context.Context, ip string) (*corev1.Pod, error) {
	list, err := e.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + ip})
	if err != nil {
		return nil, fmt.Errorf("find the pod with address %s: %w", ip, err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("no pod runs with address %s", ip)
}

// forwards are the port-forwards that are open, by the UID of the pod and the port.
type forwards struct {
	mu   sync.Mutex
	open map[string]*forward
}

// forward is one `kubectl port-forward`. It ends by itself when its pod does.
type forward struct {
	cmd  *exec.Cmd
	stop context.CancelFunc
	// ready is closed when address is known, ended when the program has ended and err is set.
	ready, ended chan struct{}
	address      string
	err          error
}

// to returns the port-forward to a port of a pod, and starts it if there is none.
func (fs *forwards) to(e *Environment, pod *corev1.Pod, port string) *forward {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	key := string(pod.UID) + ":" + port
	if f := fs.open[key]; f != nil {
		return f
	}
	f := &forward{ready: make(chan struct{}), ended: make(chan struct{})}
	// It is used by clients that live longer than the context of one connection.
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.cmd = e.KubectlCommand(ctx, Command{Args: []string{
		"port-forward", "--namespace=" + pod.Namespace, "--address=127.0.0.1", "pod/" + pod.Name, ":" + port,
	}})
	if fs.open == nil {
		fs.open = map[string]*forward{}
	}
	fs.open[key] = f
	go func() {
		defer stop()
		f.err = f.run(pod.Name)
		fs.mu.Lock()
		delete(fs.open, key)
		fs.mu.Unlock()
		close(f.ended)
	}()
	return f
}

// run runs the program and returns why it has ended.
func (f *forward) run(pod string) error {
	var said strings.Builder
	f.cmd.Stderr = &said
	output, err := f.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.cmd.Start(); err != nil {
		return fmt.Errorf("forward a port of pod %s: %w", pod, err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if address, _, found := strings.Cut(strings.TrimPrefix(lines.Text(), "Forwarding from "), " ->"); found && f.address == "" {
			f.address = address
			close(f.ready)
		}
	}
	_, _ = io.Copy(io.Discard, output)
	return fmt.Errorf("the port-forward to pod %s has ended: %w: %s", pod, errors.Join(lines.Err(), f.cmd.Wait()), strings.TrimSpace(said.String()))
}

// Close ends all port-forwards, and removes what was built.
func (e *Environment) Close() error {
	e.forwards.mu.Lock()
	var open []*forward
	for _, f := range e.forwards.open {
		open = append(open, f)
	}
	e.forwards.mu.Unlock()
	for _, f := range open {
		f.stop()
		<-f.ended
	}
	return e.plugin.remove()
}
