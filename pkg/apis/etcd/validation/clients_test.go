// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestClients(t *testing.T) {
	long := strings.Repeat("a", 64)
	runClusterCases(t, []specCase{
		{"least", "clients: [{name: app}]", nil},
		{"with TLS", "{TLS: {auto: {}}, clients: [{name: app, commonName: 'system:user/app@example.org', secretName: a.b}, {name: b}]}", nil},
		{"without TLS for clients", "{TLS: {static: {member: {peerSecret: p}}}, clients: [{name: app}]}", nil},
		{"one user for two clients", "clients: [{name: a, commonName: x}, {name: b, commonName: x}]", nil},
		{"the shared user", "clients: [{name: a, commonName: etcd-client}]", nil},
		{"longest", "clients: [{name: " + long[:63] + ", commonName: " + long + "}]", nil},
		{"without name", "clients: [{}]", []string{"Required spec.clients[0].name"}},
		{"two of one name", "clients: [{name: a}, {name: a, secretName: x}]", []string{"Duplicate spec.clients[1].name"}},
		{"no label", "clients: [{name: A.b}]", []string{"Invalid spec.clients[0].name"}},
		{"too long", "clients: [{name: " + long + "}]", []string{"Invalid spec.clients[0].name"}},
		{"common name too long", "clients: [{name: a, commonName: " + long + "a}]", []string{"Invalid spec.clients[0].commonName"}},
		{"common name with a space", "clients: [{name: a, commonName: 'a b'}]", []string{"Invalid spec.clients[0].commonName"}},
		{"common name with a line", `clients: [{name: a, commonName: "a\nb"}]`, []string{"Invalid spec.clients[0].commonName"}},
		{"common name with a comma", "clients: [{name: a, commonName: 'a,CN=root'}]", []string{"Invalid spec.clients[0].commonName"}},
		{"a peer", "clients: [{name: a, commonName: etcd-peer}]", []string{"Invalid spec.clients[0].commonName"}},
		{"a peer by default", "clients: [{name: etcd-peer}]", []string{"Invalid spec.clients[0].commonName"}},
		{"a server", "clients: [{name: a, commonName: etcd-server}]", []string{"Invalid spec.clients[0].commonName"}},
		{"root by accident", "clients: [{name: root}]", []string{"Required spec.clients[0].commonName"}},
		{"root", "clients: [{name: root, commonName: root}]", nil},
		{"no name of a Secret", "clients: [{name: a, secretName: A}]", []string{"Invalid spec.clients[0].secretName"}},
		{"one Secret for two", "clients: [{name: a, secretName: x}, {name: b, secretName: x}]", []string{"Invalid spec.clients[1].secretName"}},
		{"one Secret for two, by default", "clients: [{name: a}, {name: b, secretName: example-a-binding}]", []string{"Invalid spec.clients[1].secretName"}},
		{"the CA", "clients: [{name: a, secretName: example-ca-tls}]", []string{"Invalid spec.clients[0].secretName"}},
		{"the client", "clients: [{name: a, secretName: example-client-tls}]", []string{"Invalid spec.clients[0].secretName"}},
		{"that of members", "{TLS: {auto: {}}, clients: [{name: a, secretName: example-server-tls}]}", []string{"Invalid spec.clients[0].secretName"}},
		{"that of a user", "{TLS: {static: {member: {peerSecret: p}}}, clients: [{name: a, secretName: p}]}", []string{"Invalid spec.clients[0].secretName"}},
		{"cert-manager", "{TLS: {certManager: {issuerRef: {name: ca}}}, clients: [{name: a}]}", []string{"Forbidden spec.clients"}},
		{"static", "{TLS: {static: {member: {serverSecret: s}, operatorSecret: o}}, clients: [{name: a}]}", []string{"Forbidden spec.clients"}},
	})
}

func TestNumberOfClients(t *testing.T) {
	c := cluster(t, "size: 3")
	for i := range maxClients {
		c.Spec.Clients = append(c.Spec.Clients, v1beta2.ClusterClient{Name: fmt.Sprintf("a%d", i)})
	}
	expect(t, ValidateEtcdCluster(c))
	c.Spec.Clients = append(c.Spec.Clients, v1beta2.ClusterClient{Name: "one-more"})
	expect(t, ValidateEtcdCluster(c), "TooMany spec.clients")
}

// TestClientsMayBeAddedAndRemoved for a living cluster.
func TestClientsMayBeAddedAndRemoved(t *testing.T) {
	for _, more := range []string{"size: 3", "{size: 3, TLS: {auto: {}}}"} {
		without := cluster(t, more)
		without.ResourceVersion = "1"
		with := without.DeepCopy()
		with.Spec.Clients = []v1beta2.ClusterClient{{Name: "app"}}
		expect(t, ValidateEtcdClusterUpdate(with, without))
		expect(t, ValidateEtcdClusterUpdate(without, with))
	}
}

func TestWarningAboutRoot(t *testing.T) {
	c := cluster(t, "{size: 1, clients: [{name: a}, {name: admin, commonName: root}]}")
	warnings := WarningsForEtcdCluster(c)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.clients[1].commonName: root may do everything") {
		t.Errorf("warnings: %q", warnings)
	}
}
