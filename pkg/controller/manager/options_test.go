// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/manager"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func TestResponsible(t *testing.T) {
	t.Parallel()
	cluster := func(namespace, scope string) *v1beta2.EtcdCluster {
		c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
		if scope != "" {
			c.Annotations = map[string]string{manager.ScopeAnnotation: scope}
		}
		return c
	}
	for name, test := range map[string]struct {
		namespace   string
		clusterWide bool
		cluster     *v1beta2.EtcdCluster
		want        bool
	}{
		"everything, plain":                {cluster: cluster("a", ""), want: true},
		"everything, marked":               {cluster: cluster("a", "clusterwide"), want: true},
		"namespaced, plain":                {namespace: "a", cluster: cluster("a", ""), want: true},
		"namespaced, marked":               {namespace: "a", cluster: cluster("a", "clusterwide"), want: false},
		"namespaced, elsewhere":            {namespace: "a", cluster: cluster("b", ""), want: false},
		"clusterwide, plain":               {clusterWide: true, cluster: cluster("a", ""), want: false},
		"clusterwide, marked":              {clusterWide: true, cluster: cluster("b", "clusterwide"), want: true},
		"clusterwide, marked as something": {clusterWide: true, cluster: cluster("b", "other"), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := manager.NewOptions()
			options.Namespace, options.ClusterWide = test.namespace, test.clusterWide
			if got := options.IsResponsible(test.cluster); got != test.want {
				t.Errorf("responsible: %t, want %t", got, test.want)
			}
		})
	}
}

func TestContradictingOptionsAreRejected(t *testing.T) {
	t.Parallel()
	both := manager.NewOptions()
	both.Namespace, both.ClusterWide = "a", true
	if both.Complete() == nil {
		t.Error("--namespace with --cluster-wide was accepted")
	}
	idle := manager.NewOptions()
	idle.Workers = 0
	if idle.Complete() == nil {
		t.Error("--workers=0 was accepted")
	}
	for name, edit := range map[string]func(*manager.Options){
		"no backups": func(o *manager.Options) { o.MaxBackups = 0 },
		"a storage without the namespace of a pod": func(o *manager.Options) { o.StorageService = "storage" },
		"a backup of no storage":                   func(o *manager.Options) { o.StorageBackupPVC = "backups" },
		"a certificate without a key":              func(o *manager.Options) { o.SecureMetricsAddress, o.TLSCertFile = ":8443", "cert" },
		"a certificate that nothing serves":        func(o *manager.Options) { o.TLSCertFile, o.TLSKeyFile = "cert", "key" },
		"an embedded storage without a name":       func(o *manager.Options) { o.StorageEmbeddedService = "apiserver" },
	} {
		o := manager.NewOptions()
		edit(o)
		if o.Complete() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	fine, again := manager.NewOptions(), manager.NewOptions()
	if err := errors.Join(fine.Complete(), again.Complete()); err != nil || fine.Identity == "" {
		t.Errorf("defaults: error %v, identity %q", err, fine.Identity)
	}
	if fine.Identity == again.Identity {
		t.Errorf("two processes on one host are both %q", fine.Identity)
	}
}

// TestEachShardHasALease: controllers of different clusters do not wait for each other.
func TestEachShardHasALease(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*manager.Options){
		"etcd-operator":                  func(*manager.Options) {},
		"etcd-operator-namespace-team-a": func(o *manager.Options) { o.Namespace = "team-a" },
		"etcd-operator-clusterwide":      func(o *manager.Options) { o.ClusterWide = true },
		"a lease with a name of its own": func(o *manager.Options) { o.LeaseName = "a lease with a name of its own" },
	} {
		o := manager.NewOptions()
		edit(o)
		if err := o.Complete(); err != nil || o.LeaseName != want {
			t.Errorf("the lease is %q, not %q: %v", o.LeaseName, want, err)
		}
	}
}

// TestFlags: each flag sets what it names, and nothing else; none is left out here.
func TestFlags(t *testing.T) {
	t.Parallel()
	got, flags := manager.NewOptions(), pflag.NewFlagSet("controller", pflag.ContinueOnError)
	got.AddFlags(flags)
	given := map[string]string{
		"kubeconfig": "file", "namespace": "ns", "cluster-wide": "true", "workers": "3", "agent-image": "agent:1", "max-concurrent-backups": "4",
		"storage-service": "storage", "storage-backup-pvc": "backups", "storage-embedded-service": "apiserver",
		"secure-metrics-addr": ":8443", "tls-cert-file": "cert", "tls-private-key-file": "key",
		"listen-addr": "127.0.0.1:1", "kube-api-qps": "5.5", "kube-api-burst": "6", "leader-elect-resource-namespace": "leases",
		"image-registry": "registry.example.com", "image-pull-secrets": "a,b", "image-architectures": "s390x", "pod-user": "namespace",
		"leader-elect-resource-name": "lease", "leader-elect-lease-duration": "7s", "leader-elect-renew-deadline": "6s", "leader-elect-retry-period": "9s",
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if given[f.Name] == "" || given[f.Name] == f.DefValue {
			t.Errorf("--%s is not tried", f.Name)
		}
	})
	for name, value := range given {
		if err := flags.Set(name, value); err != nil {
			t.Error(err)
		}
	}
	want := &manager.Options{
		Kubeconfig: "file", Namespace: "ns", ClusterWide: true, Workers: 3, AgentImage: "agent:1", MaxBackups: 4, StorageService: "storage", StorageBackupPVC: "backups", StorageEmbeddedService: "apiserver", ListenAddress: "127.0.0.1:1",
		SecureMetricsAddress: ":8443", TLSCertFile: "cert", TLSKeyFile: "key",
		Platform: resources.Platform{ImageRegistry: "registry.example.com", ImagePullSecrets: []string{"a", "b"}, Architectures: []string{"s390x"}},
		PodUser:  manager.PodUserNamespace,
		QPS:      5.5, Burst: 6, LeaseNamespace: "leases", LeaseName: "lease", LeaseDuration: 7 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 9 * time.Second,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(manager.Options{})); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
