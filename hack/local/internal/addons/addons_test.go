// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"regexp"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

func TestManifests(t *testing.T) {
	all, err := manifests(5, topology.Dual)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^  name: (.*)$`)
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.path] {
			t.Errorf("%s is there twice", m.path)
		}
		seen[m.path] = true
		found := name.FindSubmatch(m.body)
		if found == nil || !strings.HasSuffix(m.path, "/"+string(found[1])) {
			t.Errorf("%s does not name the object:\n%s", m.path, m.body)
		}
		if strings.Contains(string(m.body), "<no value>") {
			t.Errorf("%s has an empty value", m.path)
		}
	}
	if len(all) < 10 {
		t.Errorf("only %d objects", len(all))
	}
}

func TestDNSReplicas(t *testing.T) {
	for nodes, want := range map[int]string{1: "replicas: 1", 2: "replicas: 2", 3: "replicas: 3", 9: "replicas: 3"} {
		all, err := manifests(nodes, topology.IPv4)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if strings.HasSuffix(m.path, "/deployments/coredns") && !strings.Contains(string(m.body), want) {
				t.Errorf("%d nodes: want %s", nodes, want)
			}
		}
	}
}

func TestDNSAddresses(t *testing.T) {
	for families, want := range map[topology.Families]string{
		topology.IPv4: "  clusterIP: 10.96.0.10\n  selector:",
		topology.IPv6: "  clusterIP: fd5e:7cd0:e01:96::10\n  selector:",
		topology.Dual: "  clusterIP: 10.96.0.10\n  clusterIPs: [\"10.96.0.10\", \"fd5e:7cd0:e01:96::10\"]\n  ipFamilyPolicy: RequireDualStack\n  selector:",
	} {
		all, err := manifests(1, families)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if strings.HasSuffix(m.path, "/services/kube-dns") && !strings.Contains(string(m.body), want) {
				t.Errorf("%s: want %s, got\n%s", families, want, m.body)
			}
		}
	}
}
