// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/apiclient"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/pki"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/progress"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Names of the components, in the order in which they are started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// Components returns the names in the order in which they are started.
func Components() []string { return []string{Etcd, APIServer, ControllerManager, Scheduler} }

// startTimeout is generous: the machine may be busy with builds.
const startTimeout = 3 * time.Minute

// ControlPlane is the control plane of the cluster.
type ControlPlane struct {
	Layout   layout.Layout
	Table    process.Table
	Options  Options
	Progress *progress.Printer
	// Started counts the programs that Up had to start.
	Started int
}

// Up starts what does not run, or runs with other arguments than wanted, and
// returns a client of the API server when that is ready. The certificates must be
// there.
func (c *ControlPlane) Up(ctx context.Context) (*apiclient.Client, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.ensureReady(ctx, Etcd, etcdArgs(c.Layout), etcdReady); err != nil {
		return nil, err
	}
	client, err := Client(c.Layout, c.Options.Families)
	if err != nil {
		return nil, err
	}
	before := c.Started
	if err := c.ensureReady(ctx, APIServer, apiServerArgs(c.Layout, c.Options), client.Ready); err != nil {
		return nil, err
	}
	if c.Started > before {
		c.Progress.Step("kube-apiserver is ready")
	}
	// These two retry by themselves until everything they need is there.
	if _, err := c.ensure(ctx, ControllerManager, controllerManagerArgs(c.Layout, c.Options)); err != nil {
		return nil, err
	}
	if _, err := c.ensure(ctx, Scheduler, schedulerArgs(c.Layout)); err != nil {
		return nil, err
	}
	return client, nil
}

// EnsureCertificates makes the certificates of the control plane, and the
// CAs that the nodes' certificates come from.
func (c *ControlPlane) EnsureCertificates() error {
	certs := pki.Store{Dir: c.Layout.PKI()}
	if err := certs.EnsureCAs(); err != nil {
		return err
	}
	for _, cert := range pki.ControlPlane() {
		if err := certs.Ensure(cert, c.Options.Families.APIServer()); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the files that the programs read.
func (c *ControlPlane) prepare() error {
	for _, dir := range []string{c.Layout.Config(), c.Layout.Logs(), c.Layout.Data()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("preparing the control plane: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(c.Layout.Data(), "etcd"), 0o700); err != nil {
		return fmt.Errorf("preparing the control plane: %w", err)
	}
	return process.WriteFile(auditPolicyFile(c.Layout), []byte(auditPolicy), 0o644)
}

func (c *ControlPlane) ensure(ctx context.Context, name string, args []string) (process.Record, error) {
	record, running := c.Table.Get(name)
	if running && slices.Equal(record.Args, args) {
		return record, nil
	}
	if running {
		c.Progress.Step("restarting %s with other arguments", name)
		if err := c.Stop(ctx, name); err != nil {
			return record, err
		}
	}
	c.Started++
	return c.Table.Start(process.Spec{
		Name:  name,
		Exe:   filepath.Join(c.Layout.Current(c.Options.Kubernetes), name),
		Args:  args,
		Log:   filepath.Join(c.Layout.Logs(), name+".log"),
		Netns: network.Netns(topology.ControlPlaneNetns),
	})
}

// errEnded says that a program has ended instead of becoming ready.
var errEnded = errors.New("the program ended")

// ensureReady starts a component unless it runs, and waits until it is ready. One
// that was running may be about to end: then it is started after all.
func (c *ControlPlane) ensureReady(ctx context.Context, name string, args []string, check func(context.Context) error) error {
	before := c.Started
	for {
		record, err := c.ensure(ctx, name, args)
		if err != nil {
			return err
		}
		err = c.wait(ctx, record, check)
		if errors.Is(err, errEnded) && c.Started == before {
			continue
		}
		return err
	}
}

// Stop ends one component. The API server would drain its connections for many
// seconds when asked politely, and nothing here needs that.
func (c *ControlPlane) Stop(ctx context.Context, name string) error {
	grace := 2 * time.Second
	if name == APIServer {
		grace = 0
	}
	return c.Table.Stop(ctx, name, grace)
}

// wait polls check until it succeeds, the program ends, or it takes too long.
func (c *ControlPlane) wait(ctx context.Context, record process.Record, check func(context.Context) error) error {
	defer c.Progress.Working("waiting for %s", record.Name)()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if !record.IsAlive() {
			return fmt.Errorf("%s does not become ready: %w; the end of %s:\n%s", record.Name, errEnded, record.Log, process.LogTail(record.Log, 10))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not become ready (%w): %w; see %s", record.Name, context.Cause(ctx), err, record.Log)
		case <-tick.C:
		}
	}
}

// etcdReady asks etcd, which listens inside the control plane's namespace only.
func etcdReady(ctx context.Context) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
			err = process.InNetns(network.Netns(topology.ControlPlaneNetns), func() error {
				var dialer net.Dialer
				conn, err = dialer.DialContext(ctx, kind, address)
				return err
			})
			return conn, err
		},
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, etcdURL+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd is not ready: %s", response.Status)
	}
	return nil
}

// Client returns a client with the administrator's rights.
func Client(l layout.Layout, families topology.Families) (*apiclient.Client, error) {
	certs := pki.Store{Dir: l.PKI()}
	return apiclient.New(families.APIServer(), apiclient.Files{
		CA:          certs.File(pki.CA + ".crt"),
		Certificate: certs.File(pki.Admin + ".crt"),
		Key:         certs.File(pki.Admin + ".key"),
	})
}
