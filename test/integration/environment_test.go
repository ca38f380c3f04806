// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

const (
	namespace      = "etcd-operator-system"
	serviceName    = "etcd-operator-apiserver"
	apiServiceName = "v1beta2.etcd.database.coreos.com"
	serverUser     = "system:serviceaccount:" + namespace + ":etcd-operator-apiserver"

	startPatience = 90 * time.Second
	// buildPatience is for a machine without a build cache, on which other tests run.
	buildPatience = 15 * time.Minute
	defaultBin    = ".cache/etcd-operator/bin/kubernetes-v1.37.2"
)

// env is the one environment that all tests share.
var env *environment

// environment is a kube-apiserver with its etcd, and our server behind it.
type environment struct {
	dir, bin string
	repo     string

	pki *servers.PKI

	kubeEtcd   kubeEtcd
	kube       *servers.Process
	server     *servers.Process
	kubePort   int
	serverPort int

	admin      *rest.Config
	kubeconfig string
	client     kubernetes.Interface
	apiService aggregator.Interface
	etcd       versioned.Interface
}

func TestMain(m *testing.M) {
	flag.Parse()
	if dir := os.Getenv(embeddedDir); dir != "" {
		os.Exit(serveEmbedded(dir))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "etcd-operator-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	env = &environment{dir: dir}
	defer env.stop()
	for _, phase := range []struct {
		run      func(context.Context) error
		patience time.Duration
	}{{env.prepare, buildPatience}, {env.start, startPatience}} {
		ctx, cancel := context.WithTimeout(context.Background(), phase.patience)
		err := phase.run(ctx)
		cancel()
		if err != nil {
			fmt.Fprintln(os.Stderr, "The environment did not start:", err)
			return 1
		}
	}
	return m.Run()
}

// step is one step of the start of the environment.
type step struct {
	name string
	run  func(context.Context) error
}

// prepare finds or builds the programs.
func (e *environment) prepare(ctx context.Context) error {
	return e.runSteps(ctx, []step{
		{"find programs", e.findPrograms},
		{"build the server", e.buildServer},
	})
}

// start starts the programs.
func (e *environment) start(ctx context.Context) error {
	return e.runSteps(ctx, []step{
		{"make certificates", e.makeCertificates},
		{"write the audit policy", func(context.Context) error { return e.writeAuditPolicy() }},
		{"start etcd", e.startKubeEtcd},
		{"start kube-apiserver", e.startKube},
		{"make clients", e.makeClients},
		{"install", e.install},
		{"start the server", func(ctx context.Context) error { return e.startServer(ctx) }},
		{"register the server", e.waitRegistered},
	})
}

func (e *environment) runSteps(ctx context.Context, steps []step) error {
	for _, step := range steps {
		begun := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if testing.Verbose() {
			fmt.Printf("environment: %s took %s\n", step.name, time.Since(begun).Round(time.Millisecond))
		}
	}
	return nil
}

func (e *environment) stop() {
	const patience = 30 * time.Second
	// Killing is enough: what they stored is thrown away.
	for _, started := range []*servers.Process{e.server, e.kube, e.kubeEtcd.Process} {
		if err := started.Stop(syscall.SIGKILL, patience); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// errNoPrograms says how to get what the tests need.
var errNoPrograms = errors.New("etcd, kube-apiserver, kube-controller-manager and kubectl are needed: run \"make local-build\", or set ETCD_OPERATOR_BIN to a directory that holds them")

func (e *environment) findPrograms(context.Context) error {
	e.bin = os.Getenv("ETCD_OPERATOR_BIN")
	if e.bin == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("%w: %w", errNoPrograms, err)
		}
		e.bin = filepath.Join(home, defaultBin)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		if _, err := exec.LookPath(filepath.Join(e.bin, name)); err != nil {
			return fmt.Errorf("%w: %w", errNoPrograms, err)
		}
	}
	var err error
	e.repo, err = filepath.Abs(filepath.Join("..", ".."))
	return err
}

func (e *environment) makeCertificates(context.Context) (err error) {
	e.pki, err = servers.NewPKI(e.dir)
	return err
}

// configFor returns a configuration of a user of the kube-apiserver.
func (e *environment) configFor(user string, groups ...string) (*rest.Config, error) {
	issued, err := e.pki.Client.Issue(e.dir, "client-"+fmt.Sprintf("%x", user), user, groups...)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(e.admin)
	config.CertData, config.KeyData = issued.Cert, issued.Key
	return config, nil
}

// writeKubeconfig makes a file that kubectl and our server can use.
func (e *environment) writeKubeconfig(name string, config *rest.Config) (string, error) {
	return servers.WriteKubeconfig(e.dir, name, config)
}

func (e *environment) makeClients(context.Context) (err error) {
	if e.kubeconfig, err = e.writeKubeconfig("admin", e.admin); err != nil {
		return err
	}
	if e.client, err = kubernetes.NewForConfig(e.admin); err != nil {
		return err
	}
	if e.apiService, err = aggregator.NewForConfig(e.admin); err != nil {
		return err
	}
	e.etcd, err = versioned.NewForConfig(e.admin)
	return err
}
