// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/apiclient"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/build"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

//go:embed manifests
var files embed.FS

var templates = template.Must(template.ParseFS(files, "manifests/*"))

// maxDNSReplicas is how many DNS servers a large cluster has.
const maxDNSReplicas = 3

// pathMark starts the first line of every manifest, which names the REST path of
// its object.
const pathMark = "# path: "

type manifest struct {
	path string
	body []byte
}

type values struct {
	CoreDNSImage   string
	LocalPathImage string
	BusyboxImage   string
	ClusterDomain  string
	DNSServiceIPs  []string
	DNSReplicas    int
}

// manifests returns the objects for a cluster with so many nodes.
func manifests(nodes int, families topology.Families) ([]manifest, error) {
	v := values{
		CoreDNSImage:   build.CoreDNSImage,
		LocalPathImage: build.LocalPathImage,
		BusyboxImage:   build.BusyboxImage,
		ClusterDomain:  topology.ClusterDomain,
		DNSReplicas:    min(nodes, maxDNSReplicas),
	}
	for _, family := range families.All() {
		v.DNSServiceIPs = append(v.DNSServiceIPs, family.DNSServiceIP)
	}
	var all []manifest
	for _, t := range templates.Templates() {
		var out bytes.Buffer
		if err := t.Execute(&out, v); err != nil {
			return nil, fmt.Errorf("filling in the manifests %s: %w", t.Name(), err)
		}
		for document := range strings.SplitSeq(out.String(), "\n---\n") {
			path, body, _ := strings.Cut(strings.TrimSpace(document), "\n")
			path, ok := strings.CutPrefix(path, pathMark)
			if !ok {
				return nil, fmt.Errorf("a manifest of %s does not begin with %q", t.Name(), pathMark)
			}
			all = append(all, manifest{path: path, body: []byte(body)})
		}
	}
	return all, nil
}

// Apply installs the addons, or changes them to what they should be.
func Apply(ctx context.Context, client *apiclient.Client, nodes int, families topology.Families) error {
	all, err := manifests(nodes, families)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := client.Apply(ctx, m.path, m.body); err != nil {
			return fmt.Errorf("installing the addons: %w", err)
		}
	}
	return nil
}

type deployment struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		UpdatedReplicas    int   `json:"updatedReplicas"`
		ReadyReplicas      int   `json:"readyReplicas"`
	} `json:"status"`
}

func (d deployment) isReady() bool {
	return d.Status.ObservedGeneration >= d.Metadata.Generation &&
		d.Status.UpdatedReplicas == d.Spec.Replicas && d.Status.ReadyReplicas >= d.Spec.Replicas
}

// Wait waits until all the addons' pods are ready.
func Wait(ctx context.Context, client *apiclient.Client) error {
	for _, name := range []string{"coredns", "local-path-provisioner"} {
		for {
			var d deployment
			err := client.Get(ctx, "/apis/apps/v1/namespaces/kube-system/deployments/"+name, &d)
			if err == nil && d.isReady() {
				break
			}
			if err == nil {
				err = errors.New("its pods are not ready")
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the deployment kube-system/%s does not become ready: %w", name, err)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
