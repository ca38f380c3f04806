// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// Clients are what a command talks to Kubernetes with.
type Clients struct {
	Etcd   versioned.Interface
	Kube   kubernetes.Interface
	Config *rest.Config
	// Namespace of the command line or of the context.
	Namespace string
}

// Flags are those of kubectl that choose a cluster, a user and a namespace.
type Flags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// UserAgent tells the requests of the plugin from others in an audit log.
	UserAgent string
	// Warnings of the API server go here, each once.
	Warnings io.Writer
}

// Bind adds the flags.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "path of the kubeconfig to use")
	clientcmd.BindOverrideFlags(&f.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
}

// Connect reads the kubeconfig and makes the clients. It sends no request.
func (f *Flags) Connect() (*Clients, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w; name it with --kubeconfig or KUBECONFIG", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace of the kubeconfig: %w; name it with --namespace", err)
	}
	config.UserAgent = f.UserAgent
	config.WarningHandler = rest.NewWarningWriter(f.Warnings, rest.WarningWriterOptions{Deduplicate: true})
	// A command sends a few requests; the limits of the server are enough.
	config.QPS = -1
	return New(config, namespace)
}

// New makes the clients of a configuration.
func New(config *rest.Config, namespace string) (*Clients, error) {
	// JSON is what kubectl sends. A proxy or an audit log shows it in words.
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeJSON
	etcd, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the etcd API: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of Kubernetes: %w", err)
	}
	return &Clients{Etcd: etcd, Kube: kube, Config: config, Namespace: namespace}, nil
}
