// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/test/servers"
)

const (
	systemNamespace = "etcd-operator-system"
	serverUser      = "system:serviceaccount:" + systemNamespace + ":etcd-operator-apiserver"
	// ordinaryGroup is the group of users that have rights through RBAC only.
	ordinaryGroup = "bench"

	startPatience = 90 * time.Second
	stopPatience  = 30 * time.Second
)

// Names of the processes in tables.
const (
	kubeEtcd   = "etcd of kube-apiserver"
	kubeServer = "kube-apiserver"
	ownEtcd    = "etcd of API server"
	ownServer  = "API server"
)

// programs is where the programs are.
type programs struct {
	// bin holds etcd, kube-apiserver and kubectl.
	bin string
	// server is the program of the API server, and repository the work tree.
	server, repository string
}

// installation is how the API server is started.
type installation struct {
	// embedded is true if etcd runs in the API server. Otherwise it is a process of its own, so that
	// its CPU time is seen.
	embedded  bool
	variables variables
	// withoutCRD leaves out the CRD.
	withoutCRD bool
}

// environment is one start of all processes with empty storages.
type environment struct {
	programs
	installation
	dir string
	pki *servers.PKI

	processes map[string]*servers.Process
	// rest is the CPU seconds that each process uses in a second without requests.
	rest      map[string]float64
	etcdURL   map[string]string
	kubeURL   string
	serverURL string

	admin      *rest.Config
	kubeconfig string
}

// startEnvironment starts all processes. The caller must stop the environment, even after an
// error.
func startEnvironment(ctx context.Context, p programs, how installation) (*environment, error) {
	dir, err := os.MkdirTemp("", "etcd-operator-bench-api-")
	e := &environment{programs: p, installation: how, dir: dir, processes: map[string]*servers.Process{}, etcdURL: map[string]string{}}
	if err != nil {
		return e, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if e.pki, err = servers.NewPKI(dir); err != nil {
		return e, err
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"start the etcd of the kube-apiserver", func(ctx context.Context) error { return e.startEtcd(ctx, kubeEtcd) }},
		{"start the etcd of the API server", e.startOwnEtcd},
		{"start the kube-apiserver", e.startKube},
		{"install the API server", e.install},
		{"start the API server", e.startServer},
		{"install the CRD", e.installCRD},
		{"wait for both APIs", e.waitServed},
	} {
		if err := step.run(ctx); err != nil {
			return e, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return e, nil
}

// stop ends every process and removes the data.
func (e *environment) stop() error {
	var errs []error
	for _, name := range []string{ownServer, kubeServer, ownEtcd, kubeEtcd} {
		errs = append(errs, e.processes[name].Stop(syscall.SIGKILL, stopPatience))
	}
	if e.dir != "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}

// startOwnEtcd starts the etcd of the API server, unless it runs in the API server.
func (e *environment) startOwnEtcd(ctx context.Context) error {
	if e.embedded {
		e.etcdURL[ownEtcd] = "unix://" + filepath.Join(e.embeddedDir(), "run", "client.sock")
		return nil
	}
	return e.startEtcd(ctx, ownEtcd)
}

// embeddedDir is the directory of the etcd in the API server.
func (e *environment) embeddedDir() string { return filepath.Join(e.dir, "embedded") }

// startEtcd starts a real etcd that syncs its log to the disk.
func (e *environment) startEtcd(ctx context.Context, name string) error {
	client, err := servers.FreePort()
	if err != nil {
		return err
	}
	peer, err := servers.FreePort()
	if err != nil {
		return err
	}
	url, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	e.etcdURL[name] = url
	e.processes[name], err = servers.Start(e.dir, fmt.Sprintf("etcd-%d", client), filepath.Join(e.bin, "etcd"),
		"--data-dir="+filepath.Join(e.dir, fmt.Sprintf("etcd-%d", client)),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL,
		"--watch-progress-notify-interval=5s",
		"--quota-backend-bytes=8589934592",
		"--log-level=error",
	)
	if err != nil {
		return err
	}
	return e.processes[name].WaitReady(ctx, url+"/health", func(context.Context) ([]byte, error) { return e.pki.Serving.PEM, nil })
}

func (e *environment) startKube(ctx context.Context) error {
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	e.kubeURL = fmt.Sprintf("https://127.0.0.1:%d", port)
	if e.admin, err = e.config("admin", "system:masters"); err != nil {
		return err
	}
	if e.kubeconfig, err = servers.WriteKubeconfig(e.dir, "admin", e.admin); err != nil {
		return err
	}
	e.processes[kubeServer], err = servers.Start(e.dir, "kube-apiserver", filepath.Join(e.bin, "kube-apiserver"),
		e.pki.KubeAPIServerArgs(e.dir, port, e.etcdURL[kubeEtcd])...)
	if err != nil {
		return err
	}
	return e.processes[kubeServer].WaitReady(ctx, e.kubeURL+"/readyz", func(context.Context) ([]byte, error) { return e.pki.Serving.PEM, nil })
}

// config returns a configuration of a user of the kube-apiserver.
func (e *environment) config(user string, groups ...string) (*rest.Config, error) {
	issued, err := e.pki.Client.Issue(e.dir, "client-"+fmt.Sprintf("%x", user), user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            e.kubeURL,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.pki.Serving.PEM, CertData: issued.Cert, KeyData: issued.Key},
		QPS:             -1,
	}, nil
}

// startServer starts the API server with the rights of its ServiceAccount.
func (e *environment) startServer(ctx context.Context) error {
	config, err := e.config(serverUser, "system:serviceaccounts", "system:serviceaccounts:"+systemNamespace)
	if err != nil {
		return err
	}
	kubeconfig, err := servers.WriteKubeconfig(e.dir, "server", config)
	if err != nil {
		return err
	}
	storage := "--etcd-servers=" + e.etcdURL[ownEtcd]
	if e.embedded {
		storage = "--embedded-etcd-dir=" + e.embeddedDir()
	}
	e.processes[ownServer], err = servers.StartWith(e.dir, "apiserver", e.variables.list(), e.server,
		"--bind-address=127.0.0.1",
		"--secure-port="+portOf(e.serverURL),
		storage,
		"--serving-cert-namespace="+systemNamespace,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
	)
	if err != nil {
		return err
	}
	return e.processes[ownServer].WaitReady(ctx, e.serverURL+"/readyz", e.serverTrust)
}
