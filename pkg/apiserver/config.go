// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/fielderrors"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/listcache"
	etcdclient "github.com/etcd-operator/etcd-operator/pkg/etcd"
	generatedopenapi "github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
	registry "github.com/etcd-operator/etcd-operator/pkg/registry/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
)

// Config is the configuration of a Server.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Scheme  *runtime.Scheme
	Codecs  serializer.CodecFactory
	// Kubernetes is the client that reads the pods of clusters. Without it the server rejects
	// requests that need the members.
	Kubernetes kubernetes.Interface
	// DelegatedAuthorizer checks the rights that a request needs in addition to the right to its
	// verb, with SubjectAccessReviews. It does so even if the kube-apiserver has authorized the
	// request itself. Nil allows everything.
	DelegatedAuthorizer authorizer.Authorizer
	// IsStorageFull is true while the storage takes no writes; nil if that is not known.
	IsStorageFull func() bool
	// DefaultEtcdVersion is the etcd version of clusters that are created without spec.version.
	// Empty means the version that this release recommends.
	DefaultEtcdVersion string

	// storage has the endpoints of resources and subresources once New has made them.
	storage map[string]rest.Storage
}

// CompletedConfig is a Config with all derived values. Only Complete creates it.
type CompletedConfig struct {
	completed
}

type completed struct {
	generic genericapiserver.CompletedConfig
	*Config
}

// Server serves the API group.
type Server struct {
	Generic *genericapiserver.GenericAPIServer
}

// NewConfig returns a configuration to which options can be applied.
func NewConfig() (*Config, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	generic := genericapiserver.NewRecommendedConfig(codecs)

	namer := openapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "etcd-operator"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "etcd-operator"

	// The names of the long-running subresources are those of the kube-apiserver. This server
	// streams below "proxy".
	generic.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch"), sets.NewString("proxy", "log", "exec", "attach", "portforward"))

	built := &Config{Generic: generic, Scheme: scheme, Codecs: codecs}
	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = &fielderrors.Handler{New: built.received, Serializer: codecs, Version: v1beta2.SchemeGroupVersion, Next: handler}
		handler = withReceived(codecs.UniversalDeserializer(), config.MaxRequestBodyBytes, handler)
		if built.IsStorageFull != nil {
			handler = withSpace(built.IsStorageFull, codecs, handler)
		}
		return genericapiserver.DefaultBuildHandlerChain(withStrictFields(withDefaultBody(handler)), config)
	}
	return built, nil
}

// received returns an empty object of the kind that the body of a request is decoded into; nil if the
// request is for none of the endpoints.
func (c *Config) received(info *request.RequestInfo) runtime.Object {
	name := info.Resource
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	if endpoint := c.storage[name]; endpoint != nil {
		return endpoint.New()
	}
	return nil
}

// Complete sets the derived values.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{completed{generic: c.Generic.Complete(), Config: c}}
}

// New returns a server with every endpoint. It does not listen yet.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("etcd-operator-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("generic API server: %w", err)
	}
	pool := etcdclient.NewPool(etcdclient.PoolConfig{})
	generic.RegisterDestroyFunc(pool.Close)
	prober.RegisterMetrics()
	storage, err := registry.NewStorage(c.Scheme, c.generic.RESTOptionsGetter, registry.Dependencies{
		Prober:         prober.New(c.Kubernetes, pool, clock.RealClock{}),
		Admission:      c.generic.AdmissionControl,
		Authorizer:     c.DelegatedAuthorizer,
		DefaultVersion: c.DefaultEtcdVersion,
	})
	if err != nil {
		return nil, err
	}
	c.storage = storage
	group := genericapiserver.NewDefaultAPIGroupInfo(etcd.GroupName, c.Scheme, runtime.NewParameterCodec(c.Scheme), c.Codecs)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{v1beta2.SchemeGroupVersion.Version: storage}
	lists := listcache.NewSerializer(group.NegotiatedSerializer, v1beta2.SchemeGroupVersion, clock.RealClock{})
	group.NegotiatedSerializer = lists
	if err := generic.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install the API group: %w", err)
	}
	remember := func(hook genericapiserver.PostStartHookContext) error {
		go lists.Run(hook)
		return nil
	}
	if err := generic.AddPostStartHook("remembered-encodings", remember); err != nil {
		return nil, err
	}

	// The server is ready only after its watch caches: a list would wait for them.
	if err := generic.AddPostStartHook("storage-readiness", generic.StorageReadinessHook.Hook); err != nil {
		return nil, err
	}
	return &Server{Generic: generic}, nil
}
