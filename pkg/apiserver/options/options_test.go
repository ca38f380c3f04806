// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"

	"github.com/spf13/pflag"
)

// parse returns the options that a command line leads to.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	options, err := New()
	if err != nil {
		t.Fatal(err)
	}
	sets := cliflag.NamedFlagSets{}
	options.AddFlags(&sets)
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		t.Fatal(err)
	}
	return options
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	options := parse(t, "--embedded-etcd-dir=/data")
	if err := options.Validate(); err != nil {
		t.Errorf("the defaults are rejected: %v", err)
	}
	if got := options.Recommended.Etcd.DefaultStorageMediaType; got != runtime.ContentTypeProtobuf {
		t.Errorf("stores %s", got)
	}
	if options.AuthorizeFrontProxyRequests {
		t.Error("asks twice")
	}
	if !options.HasSelfIssuedCertificate() {
		t.Error("makes no certificate")
	}
	if options.Recommended.Etcd.StorageConfig.Prefix != "/registry/etcd.database.coreos.com" {
		t.Errorf("prefix %q: a change of it hides everything that is stored", options.Recommended.Etcd.StorageConfig.Prefix)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		is   error
		says string
	}{
		{"no storage", nil, ErrNoStorage, ""},
		{"two storages", []string{"--embedded-etcd-dir=/data", "--etcd-servers=https://etcd:2379"}, ErrTwoStorages, ""},
		{"relative directory", []string{"--embedded-etcd-dir=data"}, nil, "absolute"},
		{"plain etcd elsewhere", []string{"--etcd-servers=https://a:2379,http://b:2379"}, ErrPlainEtcd, "http://b:2379"},
		{"no name of the secret", []string{"--embedded-etcd-dir=/data", "--serving-cert-secret="}, nil, "--serving-cert-secret"},
		{"an unknown encoding", []string{"--embedded-etcd-dir=/data", "--storage-media-type=text/plain"}, nil, "--storage-media-type"},
		{"a default version that is none", []string{"--embedded-etcd-dir=/data", "--default-etcd-version=3.6"}, nil, "--default-etcd-version: "},
		{"no default version", []string{"--embedded-etcd-dir=/data", "--default-etcd-version="}, nil, "--default-etcd-version: "},
		{"a budget without room for an object", []string{"--embedded-etcd-dir=/data", "--namespace-write-budget=1Mi"}, nil, "--namespace-write-budget: 1Mi"},
		{"a negative number of objects", []string{"--embedded-etcd-dir=/data", "--namespace-object-limit=-1"}, nil, "--namespace-object-limit: -1"},
		{"backups of another etcd", []string{"--etcd-servers=https://etcd:2379", "--embedded-etcd-backup-address=:2379"}, ErrNoEmbedded, ""},
		{"backups without certificates", []string{"--embedded-etcd-dir=/data", "--embedded-etcd-backup-address=:2379"}, nil, "need each other"},
		{"certificates for no backups", []string{"--embedded-etcd-dir=/data", "--embedded-etcd-backup-cert-dir=/certs"}, nil, "need each other"},
		{"backups without a port", []string{"--embedded-etcd-dir=/data", "--embedded-etcd-backup-address=2379", "--embedded-etcd-backup-cert-dir=/certs"}, nil, `"2379" has no port`},
		{"relative certificates", []string{"--embedded-etcd-dir=/data", "--embedded-etcd-backup-address=:2379", "--embedded-etcd-backup-cert-dir=certs"}, nil, `"certs" is not an absolute path`},
		{"negative timeout", []string{"--embedded-etcd-dir=/data", "--request-timeout=-1s"}, nil, "--request-timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := parse(t, test.args...).Validate()
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v %s", err, test.is, test.says)
			}
		})
	}
	for _, args := range [][]string{
		{"--etcd-servers=https://etcd:2379"},
		{"--etcd-servers=https://etcd:2379", "--default-etcd-version=3.5.26"},
		{"--etcd-servers=http://127.0.0.1:2379,http://localhost:2379,http://[::1]:2379"},
		{"--etcd-servers=unix:///run/etcd.sock"},
		{"--embedded-etcd-dir=/data", "--embedded-etcd-backup-address=:2379", "--embedded-etcd-backup-cert-dir=/certs"},
	} {
		if err := parse(t, args...).Validate(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	err := parse(t, "--request-timeout=-1s", "--max-requests-inflight=-1").Validate()
	for _, part := range []string{ErrNoStorage.Error(), "--request-timeout", "--max-requests-inflight"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %q", err, part)
		}
	}
}

// TestOutsideACluster: the error says what to do.
func TestOutsideACluster(t *testing.T) {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		t.Skip("KUBERNETES_SERVICE_HOST is set: the test is about a process outside of a cluster")
	}
	t.Parallel()
	err := parse(t, "--embedded-etcd-dir="+t.TempDir()).Run(t.Context())
	if !errors.Is(err, ErrServingCertEnv) {
		t.Errorf("got %v, want %v", err, ErrServingCertEnv)
	}
}

func TestKubeconfigThatIsNotThere(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	err := parse(t, "--embedded-etcd-dir="+t.TempDir(), "--kubeconfig="+missing).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, want an error that names %s", err, missing)
	}
}

// TestFeaturesGoByTheLibrary: see useKubernetesVersion.
func TestFeaturesGoByTheLibrary(t *testing.T) {
	t.Parallel()
	parse(t)
	version := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	if got := version.EmulationVersion().String(); got != baseversion.DefaultKubeBinaryVersion {
		t.Errorf("emulates %s, want %s", got, baseversion.DefaultKubeBinaryVersion)
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.WatchList) {
		t.Error("WatchList is off")
	}
}
