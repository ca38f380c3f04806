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
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdclient "github.com/etcd-operator/etcd-operator/pkg/etcd"
	generatedopenapi "github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
	registry "github.com/etcd-operator/etcd-operator/pkg/registry/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
)

// Config is what a Server is made of.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Scheme  *runtime.Scheme
	Codecs  serializer.CodecFactory
	// Kubernetes is where the pods of clusters are found. Without it, what is to be
	// asked of their members is refused.
	Kubernetes kubernetes.Interface
	// SecondAuthorizer is asked for the rights that a request needs beside the right to its
	// verb, also if the kube-apiserver has authorized the request; nil allows everything.
	SecondAuthorizer authorizer.Authorizer
	// DefaultEtcdVersion is for clusters that are created without a version; empty for the
	// version that this release recommends.
	DefaultEtcdVersion string
}

// CompletedConfig is a Config with everything derived that can be derived. It can
// only be made by Complete.
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

	// Streams are served below "proxy", which the kube-apiserver takes for long
	// running as well; the others are the names that it knows beside that.
	generic.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch"), sets.NewString("proxy", "log", "exec", "attach", "portforward"))

	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = withReceived(codecs.UniversalDeserializer(), config.MaxRequestBodyBytes, handler)
		return genericapiserver.DefaultBuildHandlerChain(withStrictFields(withDefaultBody(handler)), config)
	}

	return &Config{Generic: generic, Scheme: scheme, Codecs: codecs}, nil
}

// Complete derives what is not set.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{completed{generic: c.Generic.Complete(), Config: c}}
}

// New returns a server that has every endpoint installed and does not listen yet.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("etcd-operator-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("generic API server: %w", err)
	}
	pool := etcdclient.NewPool(etcdclient.PoolConfig{})
	generic.RegisterDestroyFunc(pool.Close)
	live.RegisterMetrics()
	storage, err := registry.NewStorage(c.Scheme, c.generic.RESTOptionsGetter, registry.Dependencies{
		Asker:          live.NewAsker(c.Kubernetes, pool, clock.RealClock{}),
		Admission:      c.generic.AdmissionControl,
		Authorizer:     c.SecondAuthorizer,
		DefaultVersion: c.DefaultEtcdVersion,
	})
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(etcd.GroupName, c.Scheme, runtime.NewParameterCodec(c.Scheme), c.Codecs)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{v1beta2.SchemeGroupVersion.Version: storage}
	if err := generic.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install the API group: %w", err)
	}

	// Not ready before the watch caches are: a list would wait for them.
	if err := generic.AddPostStartHook("storage-readiness", generic.StorageReadinessHook.Hook); err != nil {
		return nil, err
	}
	return &Server{Generic: generic}, nil
}
