// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewer is a kube-apiserver in which the token "right" is of a user that may get /metrics, and "none" of another.
func reviewer(t *testing.T) kubernetes.Interface {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authenticationv1.TokenReview{}
		respond(t, w, r, review, func() {
			if token := review.Spec.Token; token == "right" || token == "none" {
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: token}}
			}
		})
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		respond(t, w, r, review, func() {
			asked := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "right" && asked != nil && asked.Path == "/metrics" && asked.Verb == "get"
		})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// respond reads a review, and returns it with its status.
func respond(t *testing.T, w http.ResponseWriter, r *http.Request, review any, decide func()) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		t.Error(err)
	}
	decide()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		t.Error(err)
	}
}

// TestSecureMetrics: metrics need a token of a user that may get /metrics.
func TestSecureMetrics(t *testing.T) {
	t.Parallel()
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "etcd_operator_leader 1") })
	s, err := newSecureMetrics(t.Context(), &Options{SecureMetricsAddress: "127.0.0.1:0"}, reviewer(t), shown)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(ctx) })
	defer serving.Wait()
	defer cancel()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is the server's own
	for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "none": http.StatusForbidden, "right": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.serving.Listener.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != want || (string(body) == "etcd_operator_leader 1") != (want == http.StatusOK) {
			t.Errorf("token %q: %d %s, want %d", token, response.StatusCode, body, want)
		}
	}
	client.CloseIdleConnections()
	if _, err := newSecureMetrics(t.Context(), &Options{SecureMetricsAddress: "8443"}, reviewer(t), shown); err == nil {
		t.Error("an address without a colon is taken")
	}
}
