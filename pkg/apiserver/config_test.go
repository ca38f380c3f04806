// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestLongRunning: only what no timeout cuts may stream.
func TestLongRunning(t *testing.T) {
	t.Parallel()
	config, err := NewConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		verb, subresource string
		want              bool
	}{
		{"watch", "", true},
		{"get", "proxy", true},
		{"get", "log", true},
		{"get", "health", false},
		{"get", "", false},
		{"list", "", false},
		{"create", "backup", false},
	} {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: test.verb, Resource: "etcdclusters", Subresource: test.subresource}
		if got := config.Generic.LongRunningFunc(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), info); got != test.want {
			t.Errorf("%s of %q: long running is %t, want %t", test.verb, test.subresource, got, test.want)
		}
	}
}

// TestScheme: each kind is its own in-memory version, and so is the Scale.
func TestScheme(t *testing.T) {
	t.Parallel()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		for _, version := range []string{v1beta2.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
			gvk := v1beta2.SchemeGroupVersion.WithKind(kind)
			gvk.Version = version
			if !scheme.Recognizes(gvk) {
				t.Errorf("%s is not known", gvk)
			}
		}
	}
}
