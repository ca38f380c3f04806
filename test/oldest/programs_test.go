// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/kubeapi"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/options"
	"github.com/etcd-operator/etcd-operator/pkg/controller/manager"
)

// patience bounds the start of a program.
const patience = time.Minute

// kubernetes starts a server for the recorded document, and returns a kubeconfig for it.
func kubernetes(t *testing.T) (*Server, string) {
	t.Helper()
	server := NewServer(load(t))
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["oldest"] = &clientcmdapi.Cluster{Server: listener.URL}
	config.Contexts["oldest"] = &clientcmdapi.Context{Cluster: "oldest"}
	config.CurrentContext = "oldest"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return server, kubeconfig
}

// apiServer returns the options of an API server on that Kubernetes, and its address.
func apiServer(t *testing.T, kubeconfig string, args ...string) (*options.Options, string) {
	t.Helper()
	o, err := options.New()
	if err != nil {
		t.Fatal(err)
	}
	var named cliflag.NamedFlagSets
	o.AddFlags(&named)
	flags := pflag.NewFlagSet("apiserver", pflag.ContinueOnError)
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	err = flags.Parse(append([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--authentication-skip-lookup", "--bind-address=127.0.0.1", "--shutdown-delay-duration=0s",
		"--embedded-etcd-dir=" + t.TempDir(),
	}, args...))
	if err != nil {
		t.Fatal(err)
	}
	serving := o.Recommended.SecureServing
	if serving.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		t.Fatal(err)
	}
	return o, "https://" + serving.Listener.Addr().String()
}

// run runs a program until the test ends.
func run(t *testing.T, program func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- program(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the program ended: %v", err)
		}
	})
}

// awaitReady waits until the API server is ready.
func awaitReady(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is of this very test
	defer client.CloseIdleConnections()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		last = fmt.Sprintf("%s %s", response.Status, body)
		return err == nil && response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		t.Errorf("the API server does not become ready: %v; at last: %s", err, last)
	}
}

func checkUnserved(t *testing.T, server *Server) {
	t.Helper()
	for _, unserved := range server.Unserved() {
		t.Errorf("Kubernetes %s does not serve a resource that was requested: %s", server.document.Kubernetes, unserved)
	}
}

// TestAPIServer: the API server becomes ready on the oldest Kubernetes, and asks it for
// nothing that it does not serve. What it watches is what it makes sure of before.
func TestAPIServer(t *testing.T) {
	server, kubeconfig := kubernetes(t)
	o, address := apiServer(t, kubeconfig)
	run(t, o.Run)
	awaitReady(t, address)
	checkUnserved(t, server)
	confirmed := sets.New[schema.GroupVersionResource]()
	for _, api := range o.RequiredAPIs() {
		for _, resource := range api.Resources {
			if !newer.Has(api.GroupVersion.Group + "/" + resource) {
				confirmed.Insert(api.GroupVersion.WithResource(resource))
			}
		}
	}
	awaitWatched(t, server, confirmed)
}

// awaitWatched waits until all that is wanted is watched, and nothing else is.
func awaitWatched(t *testing.T, server *Server, want sets.Set[schema.GroupVersionResource]) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return server.Watched().IsSuperset(want), nil
	})
	if err != nil {
		t.Errorf("not watched: %v", want.Difference(server.Watched()).UnsortedList())
	}
	if more := server.Watched().Difference(want); more.Len() > 0 {
		t.Errorf("watched, but not expected: %v", more.UnsortedList())
	}
}

// TestAPIServerMustEnforce: a plugin that a flag names is never left out in silence.
func TestAPIServerMustEnforce(t *testing.T) {
	_, kubeconfig := kubernetes(t)
	o, _ := apiServer(t, kubeconfig, "--enable-admission-plugins=MutatingAdmissionPolicy")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := o.Run(ctx); !errors.Is(err, kubeapi.ErrNotServed) {
		t.Errorf("the API server ended with %v", err)
	}
}

// TestController: the controller starts on the oldest Kubernetes. It watches all that its
// role lets it watch, and asks for nothing that is not served.
func TestController(t *testing.T) {
	server, kubeconfig := kubernetes(t)
	server.Serve(v1beta2.SchemeGroupVersion, map[string]string{
		"etcdclusters": "EtcdCluster", "etcdbackups": "EtcdBackup", "etcdrestores": "EtcdRestore",
	})
	o := manager.NewOptions()
	o.Kubeconfig, o.ListenAddress = kubeconfig, "127.0.0.1:0"
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	want := sets.New[schema.GroupVersionResource]()
	for _, objects := range manifests(t) {
		for _, object := range objects {
			if object.GetName() == "etcd-operator-controller" {
				want = want.Union(watchable(rulesOf(t, object)))
			}
		}
	}
	if want.Len() == 0 {
		t.Fatal("the role of the controller was not found")
	}
	run(t, func(ctx context.Context) error { return manager.Run(ctx, o) })
	awaitWatched(t, server, want)
	checkUnserved(t, server)
}

func watchable(rules []rbacv1.PolicyRule) sets.Set[schema.GroupVersionResource] {
	all := sets.New[schema.GroupVersionResource]()
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			version := "v1"
			if group == v1beta2.SchemeGroupVersion.Group {
				version = v1beta2.SchemeGroupVersion.Version
			}
			for _, resource := range rule.Resources {
				if slices.Contains(rule.Verbs, "watch") {
					all.Insert(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
				}
			}
		}
	}
	return all
}
