// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// ScopeAnnotation marks clusters for a clusterwide controller; see Options.
const (
	ScopeAnnotation  = "etcd.database.coreos.com/scope"
	ScopeClusterWide = "clusterwide"
)

// imageRepository has an image of every release.
const imageRepository = resources.DefaultAgentRepository

// defaultNamespace is where artifacts/install puts the programs.
const defaultNamespace = "etcd-operator-system"

// Environment variables that tell the pod of the controller.
const (
	envPodNamespace = "POD_NAMESPACE"
	envPodName      = "POD_NAME"
	envPodUID       = "POD_UID"
)

// Options are the command line of the controller.
type Options struct {
	// Kubeconfig is the path of a kubeconfig; empty: the pod's service account.
	Kubeconfig string
	// Namespace, if set, makes this a namespaced controller: it looks after the
	// clusters of one namespace that do not carry the scope annotation.
	Namespace string
	// ClusterWide makes this a clusterwide controller in the old sense: it looks after
	// the clusters of all namespaces that carry the scope annotation. With neither,
	// it looks after every cluster.
	ClusterWide bool
	// Workers is how many clusters are reconciled at the same time. Those whose members are
	// waited for do not count.
	Workers int
	// ListenAddress serves /healthz and /readyz, and /metrics if SecureMetricsAddress is empty.
	ListenAddress string
	// SecureMetricsAddress serves /metrics over TLS, to users that may get this path.
	SecureMetricsAddress string
	// TLSCertFile and TLSKeyFile are the certificate of SecureMetricsAddress. Empty: one that is issued at each start.
	TLSCertFile, TLSKeyFile string
	// AgentImage is the image of what moves data: the Jobs of backups and the init
	// containers of recoveries. Empty: the image of the controller's own pod.
	AgentImage string
	// Platform and PodUser are what the installation says about every pod.
	Platform resources.Platform
	PodUser  PodUser
	// MaxBackups is how many backups may run at once, over all clusters.
	MaxBackups int
	// StorageService is the headless Service of the etcd that stores the objects of the API
	// servers, in the namespace of the controller's own pod. If it is set, the controller issues
	// and renews the certificates of that etcd.
	StorageService string
	// StorageEmbeddedService is the Service of the only API server, if it has that etcd inside.
	StorageEmbeddedService string
	// StorageBackupPVC is the PVC for backups of that etcd. If it is set, the controller creates
	// an EtcdBackup once.
	StorageBackupPVC string
	// QPS and Burst bound the requests to the API.
	QPS   float32
	Burst int

	// LeaseNamespace and LeaseName name the lease. Identity, which is unique, names its
	// holder. Without LeaseName the lease is that of the scope.
	LeaseNamespace string
	LeaseName      string
	Identity       string
	LeaseDuration  time.Duration
	RenewDeadline  time.Duration
	RetryPeriod    time.Duration

	// podNamespace and podName are the controller's own pod; empty outside of one.
	podNamespace, podName string
	// taken may change while the controller runs. A copy of the options shares them.
	taken *takenNamespaces
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Workers:       8,
		ListenAddress: "0.0.0.0:8080",
		Platform:      newPlatform(),
		PodUser:       PodUserAuto,
		MaxBackups:    10,
		QPS:           200,
		Burst:         400,
		LeaseDuration: 11 * time.Second,
		RenewDeadline: 8 * time.Second,
		RetryPeriod:   1500 * time.Millisecond,
		taken:         &takenNamespaces{},
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "path of a kubeconfig; empty: the service account of the pod")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "look after the clusters of this namespace only, and only those without the annotation "+ScopeAnnotation+"="+ScopeClusterWide)
	fs.BoolVar(&o.ClusterWide, "cluster-wide", o.ClusterWide, "look after the clusters of all namespaces that carry the annotation "+ScopeAnnotation+"="+ScopeClusterWide+" only; without this flag and without --namespace every cluster is looked after")
	fs.IntVar(&o.Workers, "workers", o.Workers, "how many clusters are reconciled at the same time, not counting those whose members are waited for")
	fs.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "image with the agent that moves backups and the launcher of new members; empty: the image of the controller's own pod, or of this release outside of a pod")
	o.addPlatformFlags(fs)
	fs.IntVar(&o.MaxBackups, "max-concurrent-backups", o.MaxBackups, "how many backups run at the same time, over all clusters; at most half of them in one namespace, unless --namespace is set, and never more than one of a cluster")
	fs.StringVar(&o.StorageService, "storage-service", o.StorageService, "headless Service of the etcd that stores the objects of the API servers, in the namespace of the controller's own pod. If set, the controller issues and renews the certificates of that etcd, in Secrets whose names begin with its name.")
	fs.StringVar(&o.StorageEmbeddedService, "storage-embedded-service", o.StorageEmbeddedService, "Service of the only API server, if that stores the objects in an etcd of its own process (--embedded-etcd-dir) and serves backups of it on port 2379 of this Service. The value of --storage-service is then the name of that etcd, and there is no such Service.")
	fs.StringVar(&o.StorageBackupPVC, "storage-backup-pvc", o.StorageBackupPVC, "PVC in the namespace of the controller's own pod for backups of the etcd of --storage-service. If set, the controller creates an EtcdBackup with the name of that Service once. Afterwards it changes only endpoints that it has written itself, when the objects move between one API server and several, and the annotation of --cluster-wide. With --namespace it needs the namespace of the pod. Of several controllers, one has this flag.")
	fs.StringVar(&o.ListenAddress, "listen-addr", o.ListenAddress, "address that serves /healthz and /readyz, and /metrics without --secure-metrics-addr")
	fs.StringVar(&o.SecureMetricsAddress, "secure-metrics-addr", o.SecureMetricsAddress, "address that serves /metrics over TLS, to users that have the right to get this path; empty: /metrics is served at --listen-addr, without TLS and to everyone")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "certificate of --secure-metrics-addr; empty: one that is issued at each start")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "key of --tls-cert-file")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to the API")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "burst of requests to the API")
	fs.StringVar(&o.LeaseNamespace, "leader-elect-resource-namespace", o.LeaseNamespace, "namespace of the lease; empty: the namespace of the controller's own pod, or "+defaultNamespace)
	fs.StringVar(&o.LeaseName, "leader-elect-resource-name", o.LeaseName, "name of the lease; empty: one that follows from --namespace and --cluster-wide, so that each shard has its own")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "how long the others wait for a leader that has vanished")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "how long the leader tries to renew the lease before it stops leading")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "how long to wait between two tries for the lease")
}

// Complete fills what the environment knows and checks the options.
func (o *Options) Complete() error {
	if o.Namespace != "" && o.ClusterWide {
		return errors.New("--namespace and --cluster-wide exclude each other")
	}
	if o.Workers < 1 {
		return fmt.Errorf("--workers is %d and must be at least 1", o.Workers)
	}
	if o.SecureMetricsAddress == "" && o.TLSCertFile != "" || (o.TLSCertFile == "") != (o.TLSKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file need each other and --secure-metrics-addr")
	}
	if o.MaxBackups < 1 {
		return fmt.Errorf("--max-concurrent-backups is %d and must be at least 1", o.MaxBackups)
	}
	o.podNamespace, o.podName = os.Getenv(envPodNamespace), os.Getenv(envPodName)
	if o.LeaseNamespace == "" {
		o.LeaseNamespace = cmp.Or(o.podNamespace, defaultNamespace)
	}
	o.LeaseName = cmp.Or(o.LeaseName, o.scope().leaseName())
	if err := o.checkStorage(); err != nil {
		return err
	}
	if err := o.checkPlatform(); err != nil {
		return err
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find an identity for the lease: %w", err)
		}
		// The name alone is not unique: pods that use the network of their node share it. A
		// container that is started again in the same pod goes on with the lease that it had.
		o.Identity = host + "_" + cmp.Or(os.Getenv(envPodUID), string(uuid.NewUUID()))
	}
	return nil
}

// checkStorage checks the flags of the etcd that stores the objects.
func (o *Options) checkStorage() error {
	switch {
	case o.StorageService != "" && o.podNamespace == "":
		return fmt.Errorf("--storage-service needs the namespace of the pod: set the variable %s from metadata.namespace", envPodNamespace)
	case o.StorageBackupPVC != "" && o.StorageService == "":
		return errors.New("--storage-backup-pvc needs --storage-service, the etcd to back up")
	case o.StorageEmbeddedService != "" && o.StorageService == "":
		return errors.New("--storage-embedded-service needs --storage-service, the name of the Secrets and of the EtcdBackup")
	case o.StorageBackupPVC != "" && !o.scope().includes(o.storageBackup()):
		return fmt.Errorf("--storage-backup-pvc creates an EtcdBackup in namespace %s, and with --namespace=%s this controller would not carry it out. "+
			"Remove --storage-backup-pvc here, and give it to a controller of namespace %s, of all clusters, or of those that are marked as clusterwide", o.podNamespace, o.Namespace, o.podNamespace)
	default:
		return nil
	}
}

// IsResponsible says whether a controller with these options looks after an object now. A lease in the namespace of
// the object may give it to another controller.
func (o *Options) IsResponsible(object metav1.Object) bool {
	return o.scope().includes(object) && !o.taken.include(object)
}

// places divides places for work among the namespaces that the controller looks after. One that looks after a single
// namespace divides nothing.
func (o *Options) places(total int) share.Places {
	return share.Places{Total: total, Undivided: o.Namespace != ""}
}
