// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestCheckNoDefinitions: only a response of the kube-apiserver lets the server start.
func TestCheckNoDefinitions(t *testing.T) {
	const first, second = "as.etcd.example.com", "bs.etcd.example.com"
	for name, c := range map[string]struct {
		exist   []string
		failing int
		want    []string
	}{
		"no definition":                 {},
		"one definition":                {exist: []string{second}, want: []string{second + ". Another operator", "kubectl etcd migrate operator", "Do not delete"}},
		"all definitions":               {exist: []string{first, second}, want: []string{first + ", " + second}},
		"missing right is retried":      {exist: []string{first}, failing: http.StatusForbidden, want: []string{first}},
		"no definition, after an error": {failing: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := c.failing
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				definition, ok := strings.CutPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/")
				if !ok {
					t.Errorf("unexpected request for %s", r.URL.Path)
				}
				if failing != 0 {
					http.Error(w, "not yet", failing)
					failing = 0
					return
				}
				for _, e := range c.exist {
					if e == definition {
						w.Header().Set("Content-Type", "application/json")
						_, _ = w.Write([]byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"}`))
						return
					}
				}
				http.NotFound(w, r)
			}))
			t.Cleanup(server.Close)
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			done := make(chan error, 1)
			go func() {
				done <- CheckNoDefinitions(t.Context(), kube.Discovery().RESTClient(), clock, "etcd.example.com", "as", "bs")
			}()
			if c.failing != 0 {
				step(t, clock, retryPeriod)
			}
			err = <-done
			if errors.Is(err, ErrDefinitionsExist) != (len(c.want) > 0) || err != nil && len(c.want) == 0 {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %q", want, err)
				}
			}
		})
	}
}
