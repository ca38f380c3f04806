// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"context"
	_ "embed" // The recorded document.
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Document is what a kube-apiserver serves: its aggregated discovery without what does not
// matter here, such as short names.
type Document struct {
	// Kubernetes is the version of the kube-apiserver.
	Kubernetes string                           `json:"kubernetes"`
	Groups     []apidiscovery.APIGroupDiscovery `json:"groups"`
}

//go:embed testdata/discovery.json
var recorded []byte

// Load returns the recorded document.
func Load() (*Document, error) {
	var d Document
	if err := json.Unmarshal(recorded, &d); err != nil {
		return nil, fmt.Errorf("read the recorded discovery: %w", err)
	}
	return &d, nil
}

// Save records the document in the file that the next build embeds.
func (d *Document) Save(file string) error {
	raw, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// Record asks a kube-apiserver for its document. Groups that are not Kubernetes' own are
// left out.
func Record(ctx context.Context, client discovery.DiscoveryInterface) (*Document, error) {
	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	d := &Document{Kubernetes: version.GitVersion}
	for _, path := range []string{"/api", "/apis"} {
		raw, err := client.RESTClient().Get().AbsPath(path).
			SetHeader("Accept", discovery.AcceptV2).Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("ask for the discovery below %s: %w", path, err)
		}
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("read the discovery below %s: %w", path, err)
		}
		for _, group := range list.Items {
			if OfKubernetes(group.Name) {
				d.Groups = append(d.Groups, trim(group))
			}
		}
	}
	slices.SortFunc(d.Groups, func(a, b apidiscovery.APIGroupDiscovery) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// OfKubernetes says whether a group is part of Kubernetes.
func OfKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func trim(group apidiscovery.APIGroupDiscovery) apidiscovery.APIGroupDiscovery {
	trimmed := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
	for _, version := range group.Versions {
		v := apidiscovery.APIVersionDiscovery{Version: version.Version}
		for _, resource := range version.Resources {
			r := apidiscovery.APIResourceDiscovery{
				Resource: resource.Resource, ResponseKind: resource.ResponseKind, Scope: resource.Scope, Verbs: resource.Verbs,
			}
			for _, sub := range resource.Subresources {
				r.Subresources = append(r.Subresources, apidiscovery.APISubresourceDiscovery{
					Subresource: sub.Subresource, ResponseKind: sub.ResponseKind, Verbs: sub.Verbs,
				})
			}
			v.Resources = append(v.Resources, r)
		}
		trimmed.Versions = append(trimmed.Versions, v)
	}
	return trimmed
}

// Find returns a resource, or nil if it is not served.
func (d *Document) Find(resource schema.GroupVersionResource) *apidiscovery.APIResourceDiscovery {
	version := d.version(resource.GroupVersion())
	if version == nil {
		return nil
	}
	for i := range version.Resources {
		if version.Resources[i].Resource == resource.Resource {
			return &version.Resources[i]
		}
	}
	return nil
}

// ServesKind says whether objects of a kind can be written.
func (d *Document) ServesKind(kind schema.GroupVersionKind) bool {
	version := d.version(kind.GroupVersion())
	return version != nil && slices.ContainsFunc(version.Resources, func(r apidiscovery.APIResourceDiscovery) bool {
		return r.ResponseKind != nil && r.ResponseKind.Kind == kind.Kind
	})
}

func (d *Document) version(gv schema.GroupVersion) *apidiscovery.APIVersionDiscovery {
	for i := range d.Groups {
		for j := range d.Groups[i].Versions {
			if d.Groups[i].Name == gv.Group && d.Groups[i].Versions[j].Version == gv.Version {
				return &d.Groups[i].Versions[j]
			}
		}
	}
	return nil
}
