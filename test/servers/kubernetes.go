// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// frontProxyName is the name in the certificate with which the kube-apiserver proxies requests.
const frontProxyName = "front-proxy-client"

// PKI is the CAs of a kube-apiserver, and the certificate with which it proxies requests.
type PKI struct {
	Client, Proxy, Serving *CA
	ProxyClient            *Pair
}

// NewPKI makes the CAs and the certificates of a kube-apiserver in dir.
func NewPKI(dir string) (pki *PKI, err error) {
	pki = &PKI{}
	for name, target := range map[string]**CA{"client-ca": &pki.Client, "proxy-ca": &pki.Proxy, "serving-ca": &pki.Serving} {
		if *target, err = NewCA(dir, name); err != nil {
			return nil, err
		}
	}
	if pki.ProxyClient, err = pki.Proxy.Issue(dir, "proxy-client", frontProxyName); err != nil {
		return nil, err
	}
	_, err = pki.Serving.Issue(dir, "serving", "kube-apiserver")
	return pki, err
}

// KubeAPIServerArgs returns the arguments of a kube-apiserver that serves on a loopback port and
// authorizes with RBAC. The files of the PKI are in dir.
func (p *PKI) KubeAPIServerArgs(dir string, port int, etcd string) []string {
	file := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--etcd-servers=" + etcd,
		"--authorization-mode=RBAC",
		"--tls-cert-file=" + file("serving.crt"),
		"--tls-private-key-file=" + file("serving.key"),
		"--client-ca-file=" + p.Client.File,
		"--requestheader-client-ca-file=" + p.Proxy.File,
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.ProxyClient.CertFile,
		"--proxy-client-key-file=" + p.ProxyClient.KeyFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("serving.key"),
		"--service-account-signing-key-file=" + file("serving.key"),
		"--service-cluster-ip-range=10.96.0.0/14",
		"--cert-dir=" + file("kube-certs"),
	}
}

// WriteKubeconfig writes a kubeconfig, which kubectl and the programs read, and returns its path.
func WriteKubeconfig(dir, name string, config *rest.Config) (string, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "default"}
	kubeconfig.CurrentContext = "test"
	path := filepath.Join(dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*kubeconfig, path)
}
