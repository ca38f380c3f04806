// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	domain := func(d string) func(*v1beta2.EtcdCluster) { return policy(v1beta2.PodPolicy{ClusterDomain: d}) }
	for name, tc := range map[string]struct {
		cluster      *v1beta2.EtcdCluster
		peer, client string
	}{
		"plain":       {newCluster(), "http://m-1.example-etcd-cluster.default.svc:2380", "http://m-1.example-etcd-cluster.default.svc:2379"},
		"TLS":         {newCluster(staticTLS), "https://m-1.example-etcd-cluster.default.svc:2380", "https://m-1.example-etcd-cluster.default.svc:2379"},
		"issued TLS":  {newCluster(autoTLS), "https://m-1.example-etcd-cluster.default.svc:2380", "https://m-1.example-etcd-cluster.default.svc:2379"},
		"domain":      {newCluster(domain(".cluster.local")), "http://m-1.example-etcd-cluster.default.svc.cluster.local:2380", "http://m-1.example-etcd-cluster.default.svc.cluster.local:2379"},
		"without dot": {newCluster(domain("cluster.local")), "http://m-1.example-etcd-cluster.default.svc.cluster.local:2380", "http://m-1.example-etcd-cluster.default.svc.cluster.local:2379"},
	} {
		if got := PeerURL(tc.cluster, "m-1"); got != tc.peer {
			t.Errorf("%s: peer URL %s", name, got)
		}
		if got := ClientURL(tc.cluster, "m-1"); got != tc.client {
			t.Errorf("%s: client URL %s", name, got)
		}
		if got, err := MemberFromPeerURL(tc.peer); err != nil || got != "m-1" {
			t.Errorf("%s: member %q, %v", name, got, err)
		}
	}
}

func TestMemberFromPeerURLRejectsOthers(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "m", "http://", "http://10.0.0.1:2380", "http://[::1]:2380", "http://m:2380", "http://m.c:2380", "http://m.c.n:2380",
		"http://m.c.n.pod:2380", "http://.c.n.svc:2380", "http://m.c.n.svc:2379", "http://m.c.n.svc", "unix://m.c.n.svc:2380", "http://%zz",
	} {
		if got, err := MemberFromPeerURL(url); err == nil {
			t.Errorf("%q gave the member %q", url, got)
		}
	}
}

func TestImageAndVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ repository, version, image string }{
		{"", "", "quay.io/coreos/etcd:v3.6.16"},
		{"", "3.1.10", "quay.io/coreos/etcd:v3.1.10"},
		{"", "v3.6.16", "quay.io/coreos/etcd:v3.6.16"},
		{"registry.example.com:5000/etcd", " v3.7.3 ", "registry.example.com:5000/etcd:v3.7.3"},
	} {
		c := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Repository: tc.repository, Version: tc.version}}
		if got := Image(c); got != tc.image {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

func TestTLSSecrets(t *testing.T) {
	t.Parallel()
	entries := func(names ...string) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{}}
		for _, n := range names {
			s.Data[n] = nil
		}
		return s
	}
	for _, tc := range []struct {
		use    SecretUse
		secret *corev1.Secret
		format SecretFormat
		ok     bool
	}{
		{UsePeer, entries("peer.crt", "peer.key", "peer-ca.crt"), FormatNamed, true},
		{UseServer, entries("server.crt", "server.key", "server-ca.crt"), FormatNamed, true},
		{UseOperator, entries("etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"), FormatNamed, true},
		{UsePeer, entries("tls.crt", "tls.key", "ca.crt"), FormatKubernetes, true},
		{UsePeer, entries("tls.crt", "tls.key", "ca.crt", "peer.crt"), FormatKubernetes, true},
		{UsePeer, entries("tls.crt", "tls.key", "ca.crt", "peer.crt", "peer.key", "peer-ca.crt"), FormatNamed, true},
		{UseServer, entries("peer.crt", "peer.key", "peer-ca.crt"), FormatNamed, false},
		{UseServer, entries("tls.crt", "tls.key"), FormatNamed, false},
	} {
		if format, ok := FormatOf(tc.use, tc.secret); format != tc.format || ok != tc.ok {
			t.Errorf("%s %v: %q %v", tc.use, tc.secret.Data, format, ok)
		}
	}
	manager := newCluster(func(c *v1beta2.EtcdCluster) {
		c.Spec.TLS = &v1beta2.TLSPolicy{CertManager: &v1beta2.CertManagerTLS{}}
	})
	if got, want := Secrets(manager), (TLSSecrets{"example-etcd-cluster-peer-tls", "example-etcd-cluster-server-tls", "example-etcd-cluster-operator-tls"}); got != want {
		t.Errorf("issued secrets: %+v", got)
	}
	if got := Secrets(newCluster(func(c *v1beta2.EtcdCluster) { c.Spec.TLS = &v1beta2.TLSPolicy{} })); got != (TLSSecrets{}) {
		t.Errorf("an empty policy names %+v", got)
	}
}

// TestMountedFiles: what a pod mounts is read from its own flags and volumes.
func TestMountedFiles(t *testing.T) {
	t.Parallel()
	secure := newCluster(version("3.6.16"), staticTLS)
	named, kubernetes := MemberPod{Name: second}, MemberPod{Name: second, PeerFormat: FormatKubernetes, ServerFormat: FormatKubernetes}
	prepared := kubernetes
	prepared.Prepared, prepared.Image = true, "agent:v1"
	with := func(m MemberPod, change func(*corev1.Pod)) *corev1.Pod {
		pod := Pod(secure, m)
		change(pod)
		return pod
	}
	tls := SecretFiles{"tls.crt", "tls.key", "ca.crt"}
	for name, tc := range map[string]struct {
		pod          *corev1.Pod
		peer, server SecretFiles
	}{
		"named":               {Pod(secure, named), SecretFiles{"peer.crt", "peer.key", "peer-ca.crt"}, SecretFiles{"server.crt", "server.key", "server-ca.crt"}},
		"names of Kubernetes": {Pod(secure, kubernetes), tls, tls},
		"a mixture":           {Pod(secure, MemberPod{Name: second, PeerFormat: FormatKubernetes}), tls, SecretFiles{"server.crt", "server.key", "server-ca.crt"}},
		"issued":              {Pod(newCluster(autoTLS), named), tls, tls},
		"prepared":            {Pod(secure, prepared), tls, tls},
		"without TLS":         {Pod(newCluster(), named), SecretFiles{}, SecretFiles{}},
		"without the volumes": {with(named, func(p *corev1.Pod) { p.Spec.Volumes = nil }), SecretFiles{}, SecretFiles{}},
		"flags of others":     {with(named, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"etcd"} }), SecretFiles{}, SecretFiles{}},
		"another container":   {with(named, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar" }), SecretFiles{}, SecretFiles{}},
		"a container in front": {with(kubernetes, func(p *corev1.Pod) {
			p.Spec.Containers = append([]corev1.Container{{Name: "mesh"}}, p.Spec.Containers...)
		}), tls, tls},
	} {
		for use, want := range map[SecretUse]SecretFiles{UsePeer: tc.peer, UseServer: tc.server} {
			secret, files, ok := MountedFiles(tc.pod, use)
			if files != want || ok != (want != SecretFiles{}) || (secret != "") != ok {
				t.Errorf("%s, %s: %q, %+v, %t", name, use, secret, files, ok)
			}
		}
	}
	if secret, _, _ := MountedFiles(Pod(secure, named), UsePeer); secret != Secrets(secure).Peer {
		t.Errorf("the pod mounts %q for its peers", secret)
	}
}

// A policy that asks for TLS and forgets a secret must not give a plain listener.
func TestHalfATLSPolicyDoesNotServePlainly(t *testing.T) {
	t.Parallel()
	c := newCluster(func(c *v1beta2.EtcdCluster) {
		c.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{OperatorSecret: "etcd-client-tls"}}
	})
	if !HasClientTLS(c) || HasPeerTLS(c) {
		t.Errorf("client %v, peer %v", HasClientTLS(c), HasPeerTLS(c))
	}
	pod := seed(c)
	if n := len(pod.Spec.Volumes); n != 2 || pod.Spec.Volumes[1].Secret.SecretName != "" {
		t.Errorf("volumes: %+v", pod.Spec.Volumes)
	}
}
