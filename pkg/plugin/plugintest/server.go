// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
)

// Namespace of the clusters in tests.
const Namespace = "prod"

// Handler returns a response: an object, an error of package apierrors, or an http.HandlerFunc.
type Handler func(r *http.Request, body []byte) any

// Request is one that the server got.
type Request struct {
	// Line is the method and the path, and "dryRun" behind a dry run.
	Line string
	Body string
}

// Server is an API server that returns what a test has put there.
type Server struct {
	*httptest.Server

	t        *testing.T
	mu       sync.Mutex
	handlers map[string]Handler
	requests []Request
	behind   http.Handler
}

// New starts a server that ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{t: t, handlers: map[string]Handler{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Path returns the path of an object of the group.
func Path(resource string, parts ...string) string {
	return "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/" + Namespace + "/" + strings.Join(append([]string{resource}, parts...), "/")
}

// Clients returns clients of the server.
func (s *Server) Clients(*connect.Flags) (*connect.Clients, error) {
	return connect.New(&rest.Config{Host: s.URL, QPS: -1}, Namespace)
}

// On sets what the server returns to requests of a method to a path.
func (s *Server) On(method, path string, handler Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[method+" "+path] = handler
}

// Put makes the server return an object, or an error, to GET.
func (s *Server) Put(path string, object any) {
	s.On(http.MethodGet, path, func(*http.Request, []byte) any { return object })
}

// Else makes another server respond to requests without a handler, instead of "not found".
func (s *Server) Else(behind http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = behind
}

// PutState serves a cluster, what its members say, and its events.
func (s *Server) PutState(state *State) {
	name := state.Cluster.Name
	s.Put(Path("etcdclusters", name), state.Cluster)
	s.Put(Path("etcdclusters"), &v1beta2.EtcdClusterList{Items: []v1beta2.EtcdCluster{*state.Cluster}})
	s.Put(Path("etcdclusters", name, "health"), state.Health)
	s.Put("/api/v1/namespaces/"+Namespace+"/events", &state.Events)
}

// Requests returns the requests that were no GET.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r Request) bool { return strings.HasPrefix(r.Line, http.MethodGet) })
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("read the body of %s %s: %v", r.Method, r.URL, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	line := r.Method + " " + r.URL.Path
	response := s.respond(line, r, body)
	if custom, ok := response.(http.HandlerFunc); ok {
		custom(w, r)
		return
	}
	write(w, response, s.t)
}

// respond records a request and calls its handler. Handlers run one at a time, and what they
// have written can be read after Requests.
func (s *Server) respond(line string, r *http.Request, body []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	handler, ok := s.handlers[line]
	if r.URL.Query().Get("dryRun") != "" || strings.Contains(string(body), `"dryRun":["All"]`) {
		line += " dryRun"
	}
	s.requests = append(s.requests, Request{line, string(body)})
	if !ok && s.behind != nil {
		return http.HandlerFunc(s.behind.ServeHTTP)
	}
	if !ok {
		return apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	}
	return handler(r, body)
}

func write(w http.ResponseWriter, response any, t *testing.T) {
	code := http.StatusOK
	if err, ok := response.(apierrors.APIStatus); ok {
		status := err.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		code, response = int(status.Code), &status
	}
	text, err := json.Marshal(response)
	if err != nil {
		t.Errorf("write %T: %v", response, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := fmt.Fprint(w, string(text)); err != nil {
		t.Logf("the client does not read: %v", err)
	}
}

// Forbidden is what the API server says to a user that lacks a right.
func Forbidden(resource, name string) error {
	return apierrors.NewForbidden(v1beta2.Resource(resource), name, fmt.Errorf("user \"jane\" cannot do this"))
}
