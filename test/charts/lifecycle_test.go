// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"errors"
	"io"
	"strings"
	"testing"

	action3 "helm.sh/helm/v3/pkg/action"
	loader3 "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kube3 "helm.sh/helm/v3/pkg/kube/fake"
	storage3 "helm.sh/helm/v3/pkg/storage"
	driver3 "helm.sh/helm/v3/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/kube/fake"
	releases "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

var errJob = errors.New("job failed")

// helm is what helm does with the release etcd-operator, without a Kubernetes cluster.
type helm struct {
	install, upgrade func() error
	rollback         func(revision int) error
	uninstall        func() (kept string, err error)
	status           func() string
	failJob          func(error) // the Job before helm uninstall fails from now on, or not
}

// TestLifecycle installs, upgrades, rolls back and uninstalls the chart. An uninstallation that
// the Job rejects leaves a release that can be rolled back, upgraded and uninstalled.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T) helm{"Helm 3": newHelm3, "Helm 4": newHelm4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := make(t)
			must(t, h.install(), "install")
			must(t, h.upgrade(), "upgrade")
			must(t, h.rollback(1), "roll back")

			h.failJob(errJob)
			if _, err := h.uninstall(); err == nil || !strings.Contains(err.Error(), errJob.Error()) {
				t.Fatalf("uninstall: error %v, want that of the Job", err)
			}
			if status := h.status(); status != "uninstalling" {
				t.Errorf("status %s after an uninstallation that failed", status)
			}
			if err := h.upgrade(); err == nil || !strings.Contains(err.Error(), "has no deployed releases") {
				t.Errorf("upgrade: error %v; docs/how-to/upgrade-operator.md has another message", err)
			}
			const last = 3
			must(t, h.rollback(last), "roll back to the last revision")
			h.failJob(nil)
			must(t, h.upgrade(), "upgrade")

			kept, err := h.uninstall()
			must(t, err, "uninstall")
			if !strings.Contains(kept, "[PersistentVolumeClaim] etcd-operator-apiserver-data") {
				t.Errorf("helm uninstall says %q, and not that it keeps the PVC", kept)
			}
		})
	}
}

func newHelm3(t *testing.T) helm {
	t.Helper()
	c, err := loader3.LoadDir(chartDir(operator))
	must(t, err, "load the chart")
	client := &kube3.FailingKubeClient{PrintingKubeClient: kube3.PrintingKubeClient{Out: io.Discard}}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	config := &action3.Configuration{
		Releases: storage3.Init(driver3.NewMemory()), KubeClient: client, Capabilities: &capabilities, Log: func(string, ...any) {},
	}
	return helm{
		install: func() error {
			install := action3.NewInstall(config)
			install.ReleaseName, install.Namespace = operator, "default" // the namespace of the memory
			_, err := install.Run(c, nil)
			return err
		},
		upgrade: func() error {
			upgrade := action3.NewUpgrade(config)
			upgrade.Namespace = "default"
			_, err := upgrade.Run(operator, c, nil)
			return err
		},
		rollback: func(revision int) error {
			rollback := action3.NewRollback(config)
			rollback.Version = revision
			return rollback.Run(operator)
		},
		uninstall: func() (string, error) {
			response, err := action3.NewUninstall(config).Run(operator)
			if err != nil {
				return "", err
			}
			return response.Info, nil
		},
		status: func() string {
			last, err := config.Releases.Last(operator)
			must(t, err, "read the release")
			return last.Info.Status.String()
		},
		failJob: func(err error) { client.WatchUntilReadyError = err },
	}
}

func newHelm4(t *testing.T) helm {
	t.Helper()
	c := load(t, operator)
	client := &fake.FailingKubeClient{PrintingKubeClient: fake.PrintingKubeClient{Out: io.Discard}}
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion("v1.37.0")
	must(t, err, "parse the version of Kubernetes")
	capabilities.KubeVersion = *version
	config := &action.Configuration{Releases: storage.Init(driver.NewMemory()), KubeClient: client, Capabilities: capabilities}
	const apply = "auto"
	return helm{
		install: func() error {
			install := action.NewInstall(config)
			install.ReleaseName, install.Namespace = operator, "default" // the namespace of the memory
			install.WaitStrategy, install.ServerSideApply = kube.StatusWatcherStrategy, true
			_, err := install.Run(c, nil)
			return err
		},
		upgrade: func() error {
			upgrade := action.NewUpgrade(config)
			upgrade.Namespace = "default"
			upgrade.WaitStrategy, upgrade.ServerSideApply = kube.StatusWatcherStrategy, apply
			_, err := upgrade.Run(operator, c, nil)
			return err
		},
		rollback: func(revision int) error {
			rollback := action.NewRollback(config)
			rollback.Version = revision
			rollback.WaitStrategy, rollback.ServerSideApply = kube.StatusWatcherStrategy, apply
			return rollback.Run(operator)
		},
		uninstall: func() (string, error) {
			uninstall := action.NewUninstall(config)
			uninstall.WaitStrategy = kube.StatusWatcherStrategy
			response, err := uninstall.Run(operator)
			if err != nil {
				return "", err
			}
			return response.Info, nil
		},
		status: func() string {
			last, err := config.Releases.Last(operator)
			must(t, err, "read the release")
			found, ok := last.(*releases.Release)
			if !ok {
				t.Fatalf("the release is a %T", last)
			}
			return found.Info.Status.String()
		},
		failJob: func(err error) { client.WatchUntilReadyError = err },
	}
}
