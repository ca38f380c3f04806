// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/containerd"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/pki"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

//go:embed config
var configs embed.FS

var templates = template.Must(template.ParseFS(configs, "config/*"))

// paths are the files of one node, as seen both by the node and from outside.
type paths struct {
	layout layout.Layout
	node   topology.Node
}

func (p paths) disk() string           { return filepath.Join(p.layout.Data(), p.node.Name()) }
func (p paths) varLib() string         { return filepath.Join(p.disk(), "var-lib") }
func (p paths) varLog() string         { return filepath.Join(p.disk(), "var-log") }
func (p paths) run() string            { return filepath.Join(p.layout.Run(), p.node.Name()) }
func (p paths) socket() string         { return filepath.Join(p.run(), "containerd.sock") }
func (p paths) config(n string) string { return filepath.Join(p.layout.Config(), p.node.Name(), n) }
func (p paths) log(name string) string {
	return filepath.Join(p.layout.Logs(), p.node.Name()+"-"+name+".log")
}

// Names of the generated files.
const (
	containerdConfig = "containerd.toml"
	kubeletConfig    = "kubelet.yaml"
	kubeProxyConfig  = "kube-proxy.yaml"
	cniConfig        = "cni/10-pods.conflist"
	resolvConf       = "resolv.conf"
)

// values are what the templates are filled with.
type values struct {
	Node                topology.Node
	Families            []topology.Family
	Socket              string
	PodCIDR             string
	DNSServiceIP        string
	ClusterDomain       string
	CA                  string
	Certificate         string
	Key                 string
	ResolvConf          string
	KubeProxyKubeconfig string
	CNILeases           string
}

// programDirs is where a node finds what its containerd starts.
type programDirs struct {
	runc    string // the program itself
	cni     string
	runtime string // containerd's own programs
}

// writeConfigs writes the node's configuration files and certificates.
func (p paths) writeConfigs(dirs programDirs, families topology.Families) error {
	certs := pki.Store{Dir: p.layout.PKI()}
	if err := certs.Ensure(pki.Kubelet(p.node), families.APIServer()); err != nil {
		return err
	}
	kubelet := pki.KubeletName(p.node)
	v := values{
		Node:                p.node,
		Families:            families.All(),
		Socket:              p.socket(),
		PodCIDR:             families.List(func(f topology.Family) string { return f.PodCIDR }),
		DNSServiceIP:        families.Primary().DNSServiceIP,
		ClusterDomain:       topology.ClusterDomain,
		CA:                  certs.File(pki.CA + ".crt"),
		Certificate:         certs.File(kubelet + ".crt"),
		Key:                 certs.File(kubelet + ".key"),
		ResolvConf:          p.config(resolvConf),
		KubeProxyKubeconfig: certs.Kubeconfig(pki.KubeProxy),
		CNILeases:           cniLeases,
	}
	runtime, err := containerd.Config{
		Root:      containerdRoot,
		State:     "/run/containerd",
		Socket:    p.socket(),
		CNIConfig: p.config(filepath.Dir(cniConfig)),
		CNIBin:    dirs.cni,
		Runc:      dirs.runc,
		Bin:       dirs.runtime,
	}.Render()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		containerdConfig: runtime,
		// No name server: outside the cluster's own domain there is nothing to find.
		resolvConf: []byte("# empty\n"),
	}
	for file, name := range map[string]string{
		kubeletConfig: "kubelet.yaml", kubeProxyConfig: "kube-proxy.yaml", cniConfig: "cni.json",
	} {
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, name, v); err != nil {
			return fmt.Errorf("writing the configuration of node %s: %w", p.node.Name(), err)
		}
		files[file] = out.Bytes()
	}
	for file, data := range files {
		if err := os.MkdirAll(filepath.Dir(p.config(file)), 0o755); err != nil {
			return fmt.Errorf("writing the configuration of node %s: %w", p.node.Name(), err)
		}
		if err := process.WriteFile(p.config(file), data, 0o644); err != nil {
			return fmt.Errorf("writing the configuration of node %s: %w", p.node.Name(), err)
		}
	}
	return nil
}
