// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import "github.com/etcd-operator/etcd-operator/hack/local/internal/topology"

// ControlPlane returns the certificates of the control plane and its users. They serve
// for the addresses of both families, whichever the cluster has.
func ControlPlane() []Certificate {
	local := []string{"localhost", "127.0.0.1"}
	return []Certificate{
		{
			Name: APIServer, Issuer: CA, Subject: Subject{User: "kube-apiserver"},
			Hosts: append([]string{
				"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + topology.ClusterDomain,
				topology.V4.ControlPlaneIP, topology.V4.APIServiceIP, topology.V6.ControlPlaneIP, topology.V6.APIServiceIP,
			}, local...),
		},
		{Name: KubeletClient, Issuer: CA, Subject: Subject{User: "kube-apiserver-kubelet-client", Group: "system:masters"}},
		{Name: FrontProxyClient, Issuer: FrontProxyCA, Subject: Subject{User: "front-proxy-client"}},
		{Name: ControllerManager, Issuer: CA, Subject: Subject{User: "system:kube-controller-manager"}, Hosts: local, Kubeconfig: true},
		{Name: Scheduler, Issuer: CA, Subject: Subject{User: "system:kube-scheduler"}, Hosts: local, Kubeconfig: true},
		{Name: KubeProxy, Issuer: CA, Subject: Subject{User: "system:kube-proxy"}, Kubeconfig: true},
		{Name: Admin, Issuer: CA, Subject: Subject{User: "kubernetes-admin", Group: "system:masters"}, Kubeconfig: true},
	}
}

// Kubelet returns the certificate with which a node's kubelet both serves and
// speaks to the API server; the user and group are what the node authorizer
// recognises.
func Kubelet(node topology.Node) Certificate {
	return Certificate{
		Name: KubeletName(node), Issuer: CA,
		Subject:    Subject{User: "system:node:" + node.Name(), Group: "system:nodes"},
		Hosts:      []string{node.Name(), topology.V4.NodeIP(node), topology.V6.NodeIP(node)},
		Kubeconfig: true,
	}
}

// KubeletName is the name of the files of a node's kubelet.
func KubeletName(node topology.Node) string { return "kubelet-" + node.Name() }
