// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/pki"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

func TestWriteConfigs(t *testing.T) {
	l := layout.Layout{Cache: "/cache", State: t.TempDir()}
	if err := (pki.Store{Dir: l.PKI()}).EnsureCAs(); err != nil {
		t.Fatal(err)
	}
	p := paths{layout: l, node: topology.Node{Index: 4}}
	if err := os.MkdirAll(l.PKI(), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, cert := range pki.ControlPlane() {
		if err := (pki.Store{Dir: l.PKI()}).Ensure(cert, topology.Dual.APIServer()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.writeConfigs(programDirs{runc: "/usr/sbin/runc", cni: "/cni", runtime: "/bin-of-containerd"}, topology.Dual); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		raw, err := os.ReadFile(p.config(name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "<no value>") {
			t.Errorf("%s has an empty value", name)
		}
		return string(raw)
	}
	for file, wants := range map[string][]string{
		kubeletConfig:    {"cgroupRoot: /eol-n4\n", "kubelet-n4.crt", `clusterDNS: ["10.96.0.10"]`, "unix://" + p.socket()},
		kubeProxyConfig:  {"hostnameOverride: n4\n", "clusterCIDR: 10.244.0.0/16,fd5e:7cd0:e01:100::/56\n", "kube-proxy.kubeconfig"},
		containerdConfig: {p.socket(), filepath.Join(l.Config(), "n4", "cni"), "/bin-of-containerd/containerd-shim-runc-v2"},
	} {
		got := read(file)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s:\n%s", file, want, got)
			}
		}
	}
	var cni struct {
		Plugins []struct {
			Type string `json:"type"`
			IPAM struct {
				DataDir string                `json:"dataDir"`
				Ranges  [][]map[string]string `json:"ranges"`
				Routes  []map[string]string   `json:"routes"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(read(cniConfig)), &cni); err != nil {
		t.Fatal(err)
	}
	if len(cni.Plugins) != 2 || cni.Plugins[0].IPAM.DataDir != cniLeases {
		t.Fatalf("the pod network: %+v", cni)
	}
	ranges, routes := cni.Plugins[0].IPAM.Ranges, cni.Plugins[0].IPAM.Routes
	if len(ranges) != 2 || ranges[0][0]["subnet"] != "10.244.4.0/24" || ranges[1][0]["subnet"] != "fd5e:7cd0:e01:104::/64" ||
		len(routes) != 2 || routes[0]["dst"] != "0.0.0.0/0" || routes[1]["dst"] != "::/0" {
		t.Errorf("ranges %v, routes %v", ranges, routes)
	}
}

func TestDaemons(t *testing.T) {
	p := paths{layout: layout.Layout{Cache: "/cache", State: "/state"}, node: topology.Node{Index: 2}}
	var names []string
	for _, d := range daemons(p, topology.Dual, kubernetes.Newest()) {
		names = append(names, d.name)
		if d.name == kubeletName {
			for _, want := range []string{"--hostname-override=n2", "--node-ip=172.30.0.12,fd5e:7cd0:e01::12", "--kubeconfig=/state/pki/kubelet-n2.kubeconfig"} {
				if !slices.Contains(d.args, want) {
					t.Errorf("the kubelet's arguments lack %s", want)
				}
			}
		}
	}
	if !slices.Equal(names, Daemons) {
		t.Errorf("got %v, want %v", names, Daemons)
	}
}

// Whatever a node covers must be put back if the cluster's own directories lie in it.
func TestCovered(t *testing.T) {
	for dir, want := range map[string]bool{
		"/var/lib/etcd-operator-local": true,
		"/var/lib":                     true,
		"/run/state":                   true,
		"/sys/fs/cgroup":               true,
		"/var/library":                 false,
		"/root/.cache/etcd-operator":   false,
		"/srv":                         false,
	} {
		if isCovered(dir) != want {
			t.Errorf("covered(%s) is not %v", dir, want)
		}
	}
}

// The programs of the cluster come before those of the machine, whatever the caller's PATH is.
func TestShellEnvHasTheProgramsOfTheCluster(t *testing.T) {
	m := Machine{Layout: layout.Layout{Cache: "/cache", State: "/state"}, Node: topology.Node{Index: 2}, Kubernetes: kubernetes.Newest()}
	env := m.shellEnv([]string{"PATH=/usr/bin", "KUBECONFIG=/elsewhere", "TERM=xterm"})
	var paths []string
	for _, variable := range env {
		if strings.HasPrefix(variable, "PATH=") {
			paths = append(paths, variable)
		}
	}
	if len(paths) != 1 || !strings.HasPrefix(paths[0], "PATH="+m.Layout.Current(m.Kubernetes)+":") {
		t.Errorf("paths: %v", paths)
	}
	if !slices.Contains(env, "TERM=xterm") || slices.Contains(env, "KUBECONFIG=/elsewhere") {
		t.Errorf("environment: %v", env)
	}
}
