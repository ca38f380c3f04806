// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

var policies = RequiredAPI{
	Component: "Policies", GroupVersion: schema.GroupVersion{Group: "admission.k8s.io", Version: "v1"},
	Resources: []string{"policies", "bindings"}, DisableFlag: "--without-policies", Optional: true,
}

// response is what a kube-apiserver returns for one request.
type response func(http.ResponseWriter)

func status(code int) response {
	return func(w http.ResponseWriter) { http.Error(w, http.StatusText(code), code) }
}

func serves(groupVersion string, resources ...string) response {
	return func(w http.ResponseWriter) {
		var list []string
		for _, resource := range resources {
			list = append(list, fmt.Sprintf(`{"name":%q}`, resource))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`, groupVersion, strings.Join(list, ","))
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// kubeAPIServer returns the responses one after the other, and the last one to all later requests.
func kubeAPIServer(t *testing.T, responses ...response) rest.Interface {
	t.Helper()
	questions := make(chan response, len(responses))
	for _, a := range responses[:len(responses)-1] {
		questions <- a
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "/apis/admission.k8s.io/v1"; r.URL.Path != want {
			t.Errorf("asked for %s, want %s", r.URL.Path, want)
		}
		select {
		case a := <-questions:
			a(w)
		default:
			responses[len(responses)-1](w)
		}
	}))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return kube.Discovery().RESTClient()
}

const version = "admission.k8s.io/v1"

// TestCheck checks that only a response makes a component inactive, never an error.
func TestCheck(t *testing.T) {
	required := policies
	required.Optional = false
	for name, test := range map[string]struct {
		need      RequiredAPI
		responses []response
		retries   int
		unmet     bool
		err       error
	}{
		"served API is returned as served":                                  {need: policies, responses: []response{serves(version, "bindings", "policies", "others")}},
		"API without its resources is not served":                           {need: policies, responses: []response{serves(version, "others")}, unmet: true},
		"API with one missing resource is not served":                       {need: policies, responses: []response{serves(version, "policies")}, unmet: true},
		"API in another version is not served":                              {need: policies, responses: []response{status(http.StatusNotFound)}, unmet: true},
		"unavailable kube-apiserver is retried until the API is served":     {need: policies, responses: []response{status(http.StatusServiceUnavailable), serves(version, "policies", "bindings")}, retries: 1},
		"unavailable kube-apiserver is retried until the API is not served": {need: policies, responses: []response{status(http.StatusServiceUnavailable), serves(version)}, retries: 1, unmet: true},
		"missing right is retried":                                          {need: policies, responses: []response{status(http.StatusForbidden), status(http.StatusUnauthorized), serves(version, "policies", "bindings")}, retries: 2},
		// The client itself asks again where a connection ends.
		"ended connection is retried":                    {need: policies, responses: []response{hangUp, hangUp, serves(version, "policies", "bindings")}},
		"response about another API is retried":          {need: policies, responses: []response{serves("apps/v1"), serves(version, "policies", "bindings")}, retries: 1},
		"required API that is served is accepted":        {need: required, responses: []response{serves(version, "policies", "bindings")}},
		"required API that is not served is an error":    {need: required, responses: []response{serves(version, "policies")}, err: ErrNotServed},
		"required API is an error only after a response": {need: required, responses: []response{status(http.StatusInternalServerError), serves(version)}, retries: 1, err: ErrNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, clock := kubeAPIServer(t, test.responses...), clocktesting.NewFakeClock(time.Unix(0, 0))
			var unmet []RequiredAPI
			done := make(chan error, 1)
			go func() {
				var err error
				unmet, err = Check(t.Context(), client, clock, []RequiredAPI{test.need})
				done <- err
			}()
			for range test.retries {
				step(t, clock, retryPeriod)
			}
			if err := <-done; !errors.Is(err, test.err) {
				t.Fatalf("got error %v, want %v", err, test.err)
			} else if err != nil && !strings.Contains(err.Error(), test.need.DisableFlag) {
				t.Errorf("%q does not name the flag %s", err, test.need.DisableFlag)
			}
			if got := len(unmet) == 1; got != test.unmet {
				t.Errorf("left out: %v", unmet)
			}
		})
	}
}

// step moves the clock when a timer is running.
func step(t *testing.T, clock *clocktesting.FakeClock, period time.Duration) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return clock.HasWaiters(), nil
	})
	if err != nil {
		t.Fatal("no retry is waited for")
	}
	clock.Step(period)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	client := kubeAPIServer(t, status(http.StatusServiceUnavailable))
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan error, 1)
	go func() {
		_, err := Check(ctx, client, clock, []RequiredAPI{policies})
		done <- err
	}()
	step(t, clock, 0)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

func TestWaitUntilServed(t *testing.T) {
	client := kubeAPIServer(t, serves(version), status(http.StatusServiceUnavailable), serves(version, "policies"), serves(version, "policies", "bindings"))
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan error, 1)
	go func() { done <- WaitUntilServed(t.Context(), client, clock, policies, time.Minute) }()
	for i := range 4 {
		select {
		case err := <-done:
			t.Fatalf("returned after %d questions: %v", i, err)
		default:
		}
		step(t, clock, time.Minute)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMissingNamesResources(t *testing.T) {
	got, err := MissingResources(t.Context(), kubeAPIServer(t, serves(version, "bindings")), policies)
	if err != nil || !slices.Equal(got, []string{"policies"}) {
		t.Errorf("got %v, %v", got, err)
	}
}
