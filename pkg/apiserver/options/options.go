// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
)

// DefaultEtcdPrefix is below what key the storage has the objects.
const DefaultEtcdPrefix = "/registry/" + etcd.GroupName

const (
	defaultPort      = 8443
	defaultNamespace = "etcd-operator-system"
	defaultService   = "etcd-operator-apiserver"
	defaultSecret    = "etcd-operator-apiserver-tls"

	// namespaceFile is where Kubernetes tells a pod its namespace.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Errors in the flags for the storage and the serving certificate.
var (
	ErrNoStorage      = errors.New("no storage is configured; set --embedded-etcd-dir to store objects in this process, or --etcd-servers to store them in another etcd")
	ErrTwoStorages    = errors.New("--embedded-etcd-dir and --etcd-servers exclude each other; remove one of them")
	ErrPlainEtcd      = errors.New("--etcd-servers: http is allowed for a loopback address only; use https with --etcd-cafile, --etcd-certfile and --etcd-keyfile")
	ErrNoEmbedded     = errors.New("--embedded-etcd-backup-address needs --embedded-etcd-dir; make backups of the etcd of --etcd-servers at its own address")
	ErrServingCertEnv = errors.New("without --tls-cert-file the server stores its certificate in a Secret, which needs a kube-apiserver; " +
		"run it in a pod, or set --kubeconfig, or set --tls-cert-file and --tls-private-key-file")
)

// Options is everything that flags can set.
type Options struct {
	Recommended *genericoptions.RecommendedOptions
	ServerRun   *genericoptions.ServerRunOptions

	// EmbeddedEtcdDir is the directory of the etcd in this process; empty for another etcd.
	EmbeddedEtcdDir string
	// EmbeddedEtcdBackupAddress is where that etcd serves backups; empty: nowhere.
	// EmbeddedEtcdBackupCertDir has tls.crt, tls.key and ca.crt for it.
	EmbeddedEtcdBackupAddress string
	EmbeddedEtcdBackupCertDir string
	// AllowEmptyStorage starts with an empty storage although members of EtcdClusters exist.
	AllowEmptyStorage bool
	// memberLookupTimeout is how long the lookup of members is retried before the start fails.
	memberLookupTimeout time.Duration

	// ServingCertNamespace, ServingCertService and ServingCertSecret name the Service that the
	// self-issued certificate is for, and the Secret with the certificate.
	ServingCertNamespace string
	ServingCertService   string
	ServingCertSecret    string

	// embedded is the etcd in this process; nil for another etcd, and before Run.
	embedded *embeddedetcd.Server
	// storageGuard knows whether the storage is still the one that the server was started with; nil before Run.
	storageGuard storage.Guard
	// deferred is the admission plugin whose API the kube-apiserver does not serve yet; nil if
	// it serves all APIs.
	deferred *deferredAdmission
	// clock decides when the server checks again which APIs the kube-apiserver serves.
	clock clock.Clock

	// AuthorizeFrontProxyRequests authorizes the requests that the kube-apiserver has proxied,
	// and authorized, a second time.
	AuthorizeFrontProxyRequests bool

	// DefaultEtcdVersion is the spec.version of EtcdClusters that are created without one.
	DefaultEtcdVersion string

	// NamespaceWriteBudget is how many bytes the users of a namespace may write at once; 0: any number.
	NamespaceWriteBudget resource.QuantityValue
	// NamespaceObjectLimit is how many objects of one kind the users of a namespace may have; 0: any number.
	NamespaceObjectLimit int
}

// New returns the defaults.
func New() (*Options, error) {
	if err := useKubernetesVersion(); err != nil {
		return nil, err
	}
	// applyStorage replaces the storage, so the codec here is not used.
	recommended := genericoptions.NewRecommendedOptions(DefaultEtcdPrefix, nil)
	recommended.Etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	recommended.SecureServing.BindPort = defaultPort
	recommended.SecureServing.ServerCert.CertDirectory = ""

	run := genericoptions.NewServerRunOptions()
	// Time for the removal of a server that stops from the endpoints of the Service.
	run.ShutdownDelayDuration = 3 * time.Second
	run.ShutdownSendRetryAfter = true
	run.ShutdownWatchTerminationGracePeriod = 5 * time.Second

	resourcequota.Register(recommended.Admission.Plugins)
	recommended.Admission.RecommendedPluginOrder = append(recommended.Admission.RecommendedPluginOrder, resourcequota.PluginName)

	o := &Options{
		Recommended:          recommended,
		ServerRun:            run,
		memberLookupTimeout:  memberLookupTimeout,
		ServingCertNamespace: ownNamespace(),
		ServingCertService:   defaultService,
		ServingCertSecret:    defaultSecret,
		DefaultEtcdVersion:   v1beta2.DefaultVersion,
		NamespaceWriteBudget: resource.QuantityValue{Quantity: resource.MustParse("16Mi")},
		NamespaceObjectLimit: 1000,
		clock:                clock.RealClock{},
	}
	recommended.ExtraAdmissionInitializers = o.admissionInitializers
	return o, nil
}

func ownNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	if data, err := os.ReadFile(namespaceFile); err == nil {
		if namespace := strings.TrimSpace(string(data)); namespace != "" {
			return namespace
		}
	}
	return defaultNamespace
}

// AddFlags adds every flag, in sections.
func (o *Options) AddFlags(sets *cliflag.NamedFlagSets) {
	storage := sets.FlagSet("storage")
	storage.StringVar(&o.EmbeddedEtcdDir, "embedded-etcd-dir", o.EmbeddedEtcdDir,
		"Directory of an etcd in this process that stores the objects. For one API server; several API servers need --etcd-servers.")
	storage.StringVar(&o.EmbeddedEtcdBackupAddress, "embedded-etcd-backup-address", o.EmbeddedEtcdBackupAddress,
		"Address, such as :2379, on which the etcd of --embedded-etcd-dir serves snapshots of the objects, and nothing else, over mutual TLS. Needs --embedded-etcd-backup-cert-dir.")
	storage.StringVar(&o.EmbeddedEtcdBackupCertDir, "embedded-etcd-backup-cert-dir", o.EmbeddedEtcdBackupCertDir,
		"Directory with tls.crt, tls.key and ca.crt for --embedded-etcd-backup-address. The files are read again for each connection, and may appear after the start.")
	storage.BoolVar(&o.AllowEmptyStorage, "allow-empty-storage", o.AllowEmptyStorage,
		"Start with an empty storage although Kubernetes has members of EtcdClusters that the storage does not contain. Kubernetes then deletes their pods and Services; PVCs stay.")
	storage.Var(&o.NamespaceWriteBudget, "namespace-write-budget",
		"How much the users of one namespace may write to the storage at once; one 256th of it comes back each second. Writes beyond get the status 429. "+
			"The objects of one kind in a namespace may take four times as much in the storage. "+
			"Not limited are deletions, and users with the right exceed on the kind in all namespaces and without every verb. 0 lifts the limits.")
	storage.IntVar(&o.NamespaceObjectLimit, "namespace-object-limit", o.NamespaceObjectLimit,
		"How many objects of one kind the users of one namespace may have. A create beyond gets the status 403. "+
			"Not limited are users with the right exceed on the kind in all namespaces and without every verb. 0 lifts the limit.")
	o.Recommended.Etcd.AddFlags(storage)

	serving := sets.FlagSet("secure serving")
	serving.StringVar(&o.ServingCertNamespace, "serving-cert-namespace", o.ServingCertNamespace,
		"Namespace of the Service of this server and of the Secret with its self-issued certificate. Used without --tls-cert-file.")
	serving.StringVar(&o.ServingCertService, "serving-cert-service", o.ServingCertService,
		"Name of the Service of this server, for which the self-issued certificate is valid.")
	serving.StringVar(&o.ServingCertSecret, "serving-cert-secret", o.ServingCertSecret,
		"Name of the Secret in which the API servers store their self-issued certificate.")
	o.Recommended.SecureServing.AddFlags(serving)

	authorization := sets.FlagSet("authorization")
	authorization.BoolVar(&o.AuthorizeFrontProxyRequests, "authorize-front-proxy-requests", o.AuthorizeFrontProxyRequests,
		"Authorize requests that the kube-apiserver has proxied, and authorized, a second time. "+
			"Costs a SubjectAccessReview per user, verb and object name.")
	o.Recommended.Authorization.AddFlags(authorization)

	sets.FlagSet("etcd clusters").StringVar(&o.DefaultEtcdVersion, "default-etcd-version", o.DefaultEtcdVersion,
		"Version of etcd, such as 3.6.16, for an EtcdCluster that is created without spec.version. Existing clusters keep their version. "+
			"All API servers of an installation need the same value.")

	o.Recommended.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Recommended.Audit.AddFlags(sets.FlagSet("audit"))
	o.Recommended.Features.AddFlags(sets.FlagSet("features"))
	o.Recommended.CoreAPI.AddFlags(sets.FlagSet("kube-apiserver"))
	o.Recommended.Admission.AddFlags(sets.FlagSet("admission"))
	o.Recommended.EgressSelector.AddFlags(sets.FlagSet("egress selector"))
	o.Recommended.Traces.AddFlags(sets.FlagSet("traces"))
	o.ServerRun.AddUniversalFlags(sets.FlagSet("generic"))
	hide(storage, "etcd-servers-overrides", "watch-cache-sizes", "default-watch-cache-size")
}

// hide removes flags from the help that have no use with three small kinds.
func hide(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if flag := set.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
}

// HasSelfIssuedCertificate is true if the server issues its certificate itself.
func (o *Options) HasSelfIssuedCertificate() bool {
	given := o.Recommended.SecureServing.ServerCert.CertKey
	return given.CertFile == "" && given.KeyFile == "" && o.Recommended.SecureServing.ServerCert.GeneratedCert == nil
}

// Validate returns all errors in the flags.
func (o *Options) Validate() error {
	errs := append(o.validateStorage(), o.validateLimits()...)
	errs = append(errs, o.Recommended.SecureServing.Validate()...)
	errs = append(errs, o.Recommended.Authentication.Validate()...)
	errs = append(errs, o.Recommended.Authorization.Validate()...)
	errs = append(errs, o.Recommended.Audit.Validate()...)
	errs = append(errs, o.Recommended.Features.Validate()...)
	errs = append(errs, o.Recommended.CoreAPI.Validate()...)
	errs = append(errs, o.Recommended.Admission.Validate()...)
	errs = append(errs, o.Recommended.EgressSelector.Validate()...)
	errs = append(errs, o.Recommended.Traces.Validate()...)
	errs = append(errs, o.ServerRun.Validate()...)
	if err := validation.ValidateVersion(o.DefaultEtcdVersion); err != nil {
		errs = append(errs, fmt.Errorf("--default-etcd-version: %w", err))
	}
	if o.HasSelfIssuedCertificate() {
		for flag, value := range map[string]string{
			"--serving-cert-namespace": o.ServingCertNamespace,
			"--serving-cert-service":   o.ServingCertService,
			"--serving-cert-secret":    o.ServingCertSecret,
		} {
			if value == "" {
				errs = append(errs, fmt.Errorf("%s is empty; it is required without --tls-cert-file", flag))
			}
		}
	}
	return utilerrors.NewAggregate(errs)
}

// minWriteBudget has room for the largest object.
const minWriteBudget = 2 << 20

func (o *Options) validateLimits() []error {
	if bytes := o.NamespaceWriteBudget.Value(); bytes != 0 && bytes < minWriteBudget {
		return []error{fmt.Errorf("--namespace-write-budget: %s is less than 2Mi, the room for one large object; set at least 2Mi, or 0 for no limit", &o.NamespaceWriteBudget.Quantity)}
	}
	if o.NamespaceObjectLimit < 0 {
		return []error{fmt.Errorf("--namespace-object-limit: %d is negative; set how many objects of one kind a namespace may have, or 0 for no limit", o.NamespaceObjectLimit)}
	}
	return nil
}

func (o *Options) validateStorage() []error {
	servers := o.Recommended.Etcd.StorageConfig.Transport.ServerList
	switch {
	case o.EmbeddedEtcdDir == "" && (o.EmbeddedEtcdBackupAddress != "" || o.EmbeddedEtcdBackupCertDir != ""):
		return []error{ErrNoEmbedded}
	case o.EmbeddedEtcdDir == "" && len(servers) == 0:
		return []error{ErrNoStorage}
	case o.EmbeddedEtcdDir != "" && len(servers) > 0:
		return []error{ErrTwoStorages}
	case o.EmbeddedEtcdDir != "":
		if !filepath.IsAbs(o.EmbeddedEtcdDir) {
			return []error{fmt.Errorf("--embedded-etcd-dir: %q is not an absolute path; use one that starts with /", o.EmbeddedEtcdDir)}
		}
		// The address is known when etcd runs; this value stands in for it.
		etcd := *o.Recommended.Etcd
		etcd.StorageConfig.Transport.ServerList = []string{"unix://embedded"}
		return append(o.validateBackups(), etcd.Validate()...)
	}
	errs := o.Recommended.Etcd.Validate()
	for _, server := range servers {
		parsed, err := url.Parse(server)
		if err != nil {
			errs = append(errs, fmt.Errorf("--etcd-servers: %w", err))
		} else if parsed.Scheme == "http" && !isLoopback(parsed.Hostname()) {
			errs = append(errs, fmt.Errorf("%w: %s", ErrPlainEtcd, server))
		}
	}
	return errs
}

func (o *Options) validateBackups() []error {
	if (o.EmbeddedEtcdBackupAddress == "") != (o.EmbeddedEtcdBackupCertDir == "") {
		return []error{errors.New("--embedded-etcd-backup-address and --embedded-etcd-backup-cert-dir need each other; set both, or none of them")}
	}
	if o.EmbeddedEtcdBackupAddress == "" {
		return nil
	}
	var errs []error
	if _, port, err := net.SplitHostPort(o.EmbeddedEtcdBackupAddress); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("--embedded-etcd-backup-address: %q has no port; use an address such as :2379", o.EmbeddedEtcdBackupAddress))
	}
	if !filepath.IsAbs(o.EmbeddedEtcdBackupCertDir) {
		errs = append(errs, fmt.Errorf("--embedded-etcd-backup-cert-dir: %q is not an absolute path; use one that starts with /", o.EmbeddedEtcdBackupCertDir))
	}
	return errs
}
