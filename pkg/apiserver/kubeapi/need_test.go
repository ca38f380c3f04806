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

var policies = Need{
	Part: "Policies", GroupVersion: schema.GroupVersion{Group: "admission.k8s.io", Version: "v1"},
	Resources: []string{"policies", "bindings"}, Off: "--without-policies", Optional: true,
}

// answer is what a kube-apiserver says to one question.
type answer func(http.ResponseWriter)

func status(code int) answer {
	return func(w http.ResponseWriter) { http.Error(w, http.StatusText(code), code) }
}

func serves(groupVersion string, resources ...string) answer {
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

// kubeAPIServer gives the answers one after the other, and the last one for ever.
func kubeAPIServer(t *testing.T, answers ...answer) rest.Interface {
	t.Helper()
	questions := make(chan answer, len(answers))
	for _, a := range answers[:len(answers)-1] {
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
			answers[len(answers)-1](w)
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

// TestAwait: only an answer leaves a part out, never an error.
func TestAwait(t *testing.T) {
	required := policies
	required.Optional = false
	for name, test := range map[string]struct {
		need    Need
		answers []answer
		retries int
		unmet   bool
		err     error
	}{
		"served":                       {need: policies, answers: []answer{serves(version, "bindings", "policies", "others")}},
		"not served":                   {need: policies, answers: []answer{serves(version, "others")}, unmet: true},
		"half of it is not served":     {need: policies, answers: []answer{serves(version, "policies")}, unmet: true},
		"the version is not served":    {need: policies, answers: []answer{status(http.StatusNotFound)}, unmet: true},
		"unavailable, then served":     {need: policies, answers: []answer{status(http.StatusServiceUnavailable), serves(version, "policies", "bindings")}, retries: 1},
		"unavailable, then not served": {need: policies, answers: []answer{status(http.StatusServiceUnavailable), serves(version)}, retries: 1, unmet: true},
		"no right to ask yet":          {need: policies, answers: []answer{status(http.StatusForbidden), status(http.StatusUnauthorized), serves(version, "policies", "bindings")}, retries: 2},
		// The client itself asks again where a connection ends.
		"the connection ends":               {need: policies, answers: []answer{hangUp, hangUp, serves(version, "policies", "bindings")}},
		"an answer to another question":     {need: policies, answers: []answer{serves("apps/v1"), serves(version, "policies", "bindings")}, retries: 1},
		"required and served":               {need: required, answers: []answer{serves(version, "policies", "bindings")}},
		"required and not served":           {need: required, answers: []answer{serves(version, "policies")}, err: ErrNotServed},
		"required, unavailable, not served": {need: required, answers: []answer{status(http.StatusInternalServerError), serves(version)}, retries: 1, err: ErrNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, clock := kubeAPIServer(t, test.answers...), clocktesting.NewFakeClock(time.Unix(0, 0))
			var unmet []Need
			done := make(chan error, 1)
			go func() {
				var err error
				unmet, err = Await(t.Context(), client, clock, []Need{test.need})
				done <- err
			}()
			for range test.retries {
				step(t, clock, retryPeriod)
			}
			if err := <-done; !errors.Is(err, test.err) {
				t.Fatalf("got error %v, want %v", err, test.err)
			} else if err != nil && !strings.Contains(err.Error(), test.need.Off) {
				t.Errorf("%q does not name the flag %s", err, test.need.Off)
			}
			if got := len(unmet) == 1; got != test.unmet {
				t.Errorf("left out: %v", unmet)
			}
		})
	}
}

// step lets time pass when somebody waits for it.
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

func TestAwaitEndsWithItsContext(t *testing.T) {
	client := kubeAPIServer(t, status(http.StatusServiceUnavailable))
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan error, 1)
	go func() {
		_, err := Await(ctx, client, clock, []Need{policies})
		done <- err
	}()
	step(t, clock, 0)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

func TestAwaitServed(t *testing.T) {
	client := kubeAPIServer(t, serves(version), status(http.StatusServiceUnavailable), serves(version, "policies"), serves(version, "policies", "bindings"))
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan error, 1)
	go func() { done <- AwaitServed(t.Context(), client, clock, policies, time.Minute) }()
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
	got, err := Missing(t.Context(), kubeAPIServer(t, serves(version, "bindings")), policies)
	if err != nil || !slices.Equal(got, []string{"policies"}) {
		t.Errorf("got %v, %v", got, err)
	}
}
