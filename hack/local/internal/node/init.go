// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/containerd"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/pki"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Signals that make the init start and kill the kubelet.
const (
	kubeletStartSignal = syscall.SIGUSR1
	kubeletStopSignal  = syscall.SIGUSR2
)

// restartDelay is how long the init waits before it restarts what has ended.
const restartDelay = time.Second

const (
	runtimeName   = "containerd"
	kubeProxyName = "kube-proxy"
	kubeletName   = "kubelet"
)

// Daemons are the names of the programs that every node runs.
var Daemons = []string{runtimeName, kubeProxyName, kubeletName}

// daemon is one of the programs that the init keeps running.
type daemon struct {
	name    string
	exe     string
	args    []string
	desired bool
	pid     int // 0: does not run
}

// initProcess is process 1 of a node. Everything happens on one goroutine: only
// so can it tell the ends of its own programs from those of orphans it inherits.
type initProcess struct {
	paths    paths
	daemons  []*daemon
	families topology.Families
	restart  chan *daemon
}

// RunInit is what the init of a node does. It never returns, unless the node
// cannot boot.
func RunInit(l layout.Layout, node topology.Node, families topology.Families, release kubernetes.Release) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, kubeletStartSignal, kubeletStopSignal)
	p := paths{layout: l, node: node}
	if err := unix.Sethostname([]byte(node.Name())); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := p.setupMounts(); err != nil {
		return err
	}
	if err := setupKernel(families); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		limit.Cur = limit.Max // Go would give children the old soft limit back
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	init := &initProcess{paths: p, daemons: daemons(p, families, release), families: families, restart: make(chan *daemon, 8)}
	return init.run(signals)
}

func daemons(p paths, families topology.Families, release kubernetes.Release) []*daemon {
	current := p.layout.Current(release)
	certs := pki.Store{Dir: p.layout.PKI()}
	return []*daemon{
		{name: runtimeName, exe: filepath.Join(current, runtimeName), args: []string{"--config=" + p.config(containerdConfig)}},
		{name: kubeProxyName, exe: filepath.Join(current, kubeProxyName), args: []string{"--config=" + p.config(kubeProxyConfig)}},
		{name: kubeletName, exe: filepath.Join(current, kubeletName), args: []string{
			"--config=" + p.config(kubeletConfig),
			"--kubeconfig=" + certs.Kubeconfig(pki.KubeletName(p.node)),
			"--hostname-override=" + p.node.Name(),
			"--node-ip=" + families.List(func(f topology.Family) string { return f.NodeIP(p.node) }),
			"--v=2",
		}},
	}
}

func (i *initProcess) run(signals <-chan os.Signal) error {
	runtime := i.daemons[0]
	if err := i.start(runtime); err != nil {
		return err
	}
	// The others would only fail and be restarted before the runtime and the API
	// server are there.
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		client := containerd.Client{Socket: i.paths.socket()}
		_ = process.Poll(ctx, func() bool { return client.IsReady(ctx) && apiServerReady(ctx, i.families.APIServer()) })
	}()
	for {
		select {
		case <-ready:
			ready = nil
			for _, d := range i.daemons[1:] {
				if err := i.start(d); err != nil {
					return err
				}
			}
		case d := <-i.restart:
			if d.desired {
				if err := i.start(d); err != nil {
					return err
				}
			}
		case received := <-signals:
			if err := i.handle(received); err != nil {
				return err
			}
		}
	}
}

func (i *initProcess) handle(received os.Signal) error {
	d := i.find(func(d *daemon) bool { return d.name == kubeletName })
	switch received {
	case syscall.SIGCHLD:
		i.reap()
	case kubeletStartSignal:
		return i.start(d)
	case kubeletStopSignal:
		d.desired = false
		if d.pid != 0 {
			i.logf("killing the kubelet, as told")
			return syscall.Kill(d.pid, syscall.SIGKILL)
		}
	}
	return nil
}

func (i *initProcess) find(match func(*daemon) bool) *daemon {
	for _, d := range i.daemons {
		if match(d) {
			return d
		}
	}
	return nil
}

// reap collects the processes that have ended: daemons, and orphans of pods.
func (i *initProcess) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		d := i.find(func(d *daemon) bool { return d.pid == pid })
		if d == nil {
			continue
		}
		d.pid = 0
		i.logf("%s ended: exit status %d, signal %d", d.name, status.ExitStatus(), status.Signal())
		if d.desired {
			time.AfterFunc(restartDelay, func() { i.restart <- d })
		}
	}
}

// start starts a program unless it runs, and wants it to go on running.
func (i *initProcess) start(d *daemon) error {
	d.desired = true
	if d.pid != 0 {
		return nil
	}
	log, err := os.OpenFile(i.paths.log(d.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", d.name, err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(d.exe, append([]string{d.name}, d.args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", d.name, err)
	}
	d.pid = pid
	i.logf("started %s", strings.Join(append([]string{d.exe}, d.args...), " "))
	return nil
}

func (i *initProcess) logf(format string, args ...any) {
	fmt.Printf(time.Now().UTC().Format(time.RFC3339)+" "+format+"\n", args...)
}

// apiServerReady asks without credentials: the response is not relied upon. The
// permission to ask is among the last things that a new API server sets up.
func apiServerReady(ctx context.Context, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return false
	}
	unverified := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // only whether there is a response counts
	transport := &http.Transport{TLSClientConfig: unverified, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
