// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Server is a kube-apiserver that serves the resources of a document. All lists are empty,
// watches send nothing, and what is written is confirmed and forgotten. The server remembers
// which resources were watched, and which were requested although it does not serve them.
type Server struct {
	mu       sync.Mutex
	document Document
	watched  map[schema.GroupVersionResource]bool
	unserved map[string]bool
}

// NewServer returns a server for a document.
func NewServer(d *Document) *Server {
	return &Server{
		document: Document{Kubernetes: d.Kubernetes, Groups: slices.Clone(d.Groups)},
		watched:  map[schema.GroupVersionResource]bool{}, unserved: map[string]bool{},
	}
}

// Serve adds resources to what the server serves from now on.
func (s *Server) Serve(gv schema.GroupVersion, kinds map[string]string) {
	version := apidiscovery.APIVersionDiscovery{Version: gv.Version}
	if old := s.document.version(gv); old != nil {
		version.Resources = slices.Clone(old.Resources)
	}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: resource, ResponseKind: &metav1.GroupVersionKind{Kind: kinds[resource]},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The newest entry of a group comes first and is the one that is found.
	s.document.Groups = slices.Insert(s.document.Groups, 0, apidiscovery.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Group}, Versions: []apidiscovery.APIVersionDiscovery{version},
	})
}

// Watched returns the resources that were watched.
func (s *Server) Watched() sets.Set[schema.GroupVersionResource] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sets.KeySet(s.watched)
}

// Unserved returns the requests for resources that are not served.
func (s *Server) Unserved() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.unserved))
}

var requests = &request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := requests.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !info.IsResourceRequest {
		s.discovery(w, r)
		return
	}
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	kind, served := s.find(resource, info)
	if !served {
		http.NotFound(w, r)
		return
	}
	switch info.Verb {
	case "list":
		respond(w, http.StatusOK, map[string]any{
			"kind": kind + "List", "apiVersion": resource.GroupVersion().String(),
			"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{},
		})
	case "watch":
		s.watch(w, r, resource)
	case "get":
		status := apierrors.NewNotFound(resource.GroupResource(), info.Name).Status()
		respond(w, http.StatusNotFound, status)
	default:
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
	}
}

// find returns the kind of a resource if it is served with the verb of the request, and
// makes a note of it otherwise.
func (s *Server) find(resource schema.GroupVersionResource, info *request.RequestInfo) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.document.Find(resource)
	if found == nil || !serves(found, info.Subresource, info.Verb) {
		s.unserved[fmt.Sprintf("%s %s %s", info.Verb, resource, info.Subresource)] = true
		return "", false
	}
	return found.ResponseKind.Kind, true
}

// serves says whether a resource, or a subresource of it, is served with a verb.
func serves(resource *apidiscovery.APIResourceDiscovery, subresource, verb string) bool {
	if subresource == "" {
		return slices.Contains(resource.Verbs, verb)
	}
	return slices.ContainsFunc(resource.Subresources, func(sub apidiscovery.APISubresourceDiscovery) bool {
		return sub.Subresource == subresource && slices.Contains(sub.Verbs, verb)
	})
}

// watch sends nothing for as long as the client listens. It rejects a stream of the initial
// objects; clients list instead.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, resource schema.GroupVersionResource) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		respond(w, http.StatusUnprocessableEntity, apierrors.NewInvalid(schema.GroupKind{}, "", nil).Status())
		return
	}
	s.mu.Lock()
	s.watched[resource] = true
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	<-r.Context().Done()
}

// groups responds for all groups, in the form without their resources.
func (s *Server) groups(w http.ResponseWriter, core bool) {
	if core {
		respond(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
		return
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range s.document.Groups {
		if group.Name == "" {
			continue
		}
		g := metav1.APIGroup{Name: group.Name}
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: version.Version})
		}
		list.Groups = append(list.Groups, g)
	}
	respond(w, http.StatusOK, list)
}

// discovery responds for all groups, or for one group version.
func (s *Server) discovery(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		s.groups(w, r.URL.Path == "/api")
		return
	}
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	gv, err := schema.ParseGroupVersion(path)
	s.mu.Lock()
	version := s.document.version(gv)
	s.mu.Unlock()
	if err != nil || version == nil {
		http.NotFound(w, r)
		return
	}
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	for _, resource := range version.Resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource.Resource, Kind: resource.ResponseKind.Kind, Verbs: resource.Verbs,
			Namespaced: resource.Scope == apidiscovery.ScopeNamespace,
		})
	}
	respond(w, http.StatusOK, list)
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
