// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
)

func TestClusterName(t *testing.T) {
	for name, want := range map[string][]string{
		"example":                 nil,
		strings.Repeat("a", 52):   nil,
		strings.Repeat("a", 53):   {"Invalid metadata.name"},
		"1example":                {"Invalid metadata.name"},
		"Example":                 {"Invalid metadata.name"},
		"exa.mple":                {"Invalid metadata.name"},
		"example-":                {"Invalid metadata.name"},
		"exa;mple":                {"Invalid metadata.name"},
		"../example":              {"Invalid metadata.name"},
		"exa\nmple":               {"Invalid metadata.name"},
		"--flag":                  {"Invalid metadata.name"},
		"":                        {"Required metadata.name"},
		strings.Repeat("a.b", 40): {"Invalid metadata.name", "Invalid metadata.name", "Invalid metadata.name"},
	} {
		t.Run(echo(name), func(t *testing.T) {
			c := cluster(t, "")
			c.Name = name
			expect(t, ValidateEtcdCluster(c), want...)
		})
	}
}

func TestClusterMetadata(t *testing.T) {
	c := cluster(t, "")
	c.Namespace = ""
	c.Labels = map[string]string{"not a label": ""}
	c.Finalizers = []string{"not a finalizer"}
	expect(t, ValidateEtcdCluster(c), "Required metadata.namespace", "Invalid metadata.labels", "Invalid metadata.finalizers")
}

func TestClusterSpec(t *testing.T) {
	runClusterCases(t, []specCase{
		{"least", "size: 1", nil},
		{"most", "size: 7", nil},
		{"even", "size: 4", nil},
		{"without size", "size: null", []string{"Required spec.size"}},
		{"too large", "size: 8", []string{"Invalid spec.size"}},
		{"negative", "size: -1", []string{"Invalid spec.size"}},
		{"nothing to come back to", "size: 0", []string{"Invalid spec.size"}},
		{"nothing to come back to, with a pod policy", "{size: 0, pod: {antiAffinity: true}}", []string{"Invalid spec.size"}},
		{"hibernated", "{size: 0, pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}", nil},
		{"budget", "podDisruptionBudget: Disabled", nil},
		{"unknown budget", "podDisruptionBudget: disabled", []string{"NotSupported spec.podDisruptionBudget"}},
		{"recovery", "recovery: {quorumLoss: Automatic}", nil},
		{"replacement of lost members", "recovery: {memberLoss: Manual, memberLossTimeoutSeconds: 60}", nil},
		{"unknown replacement", "recovery: {memberLoss: Never}", []string{"NotSupported spec.recovery.memberLoss"}},
		{"no time for a member to come back", "recovery: {memberLossTimeoutSeconds: 59}", []string{"Invalid spec.recovery.memberLossTimeoutSeconds"}},
		{"unknown recovery", "recovery: {quorumLoss: Always}", []string{"NotSupported spec.recovery.quorumLoss"}},
		{"without client service", "services: {}", nil},
		{"every wrong field at once", "{size: 9, version: latest, repository: 'a b', podDisruptionBudget: x, TLS: {static: {operatorSecret: _}}, etcd: {snapshotCount: 0}, backup: {storageType: FTP}}", []string{
			"Invalid spec.size", "Invalid spec.version", "Invalid spec.repository", "NotSupported spec.podDisruptionBudget",
			"Invalid spec.TLS.static.operatorSecret", "Required spec.TLS.static.member.serverSecret", "Invalid spec.etcd.snapshotCount", "NotSupported spec.backup.storageType",
		}},
	})
}

func TestVersion(t *testing.T) {
	for _, version := range []string{"3.1.0", "3.1.10", "3.6.16", "v3.5.21", "3.7.0-rc.1", "3.6.0-alpha.0", "3.99.99", "3.6.8-" + strings.Repeat("a", 121)} {
		expect(t, ValidateEtcdCluster(cluster(t, "version: "+version)))
	}
	for _, version := range []string{
		"3", "3.6", "latest", "3.6.x", "3.0.17", "2.3.8", "4.0.0", "vv3.6.8", "V3.6.8", "=3.6.8", "-3.6.8", "--data-dir=/", "3.6.8+meta", "03.6.8", "3.6.8 ", " 3.6.8",
		"3.6.8;reboot", "3.6.8`id`", "$(id)", "3.6.8\n", "3.6.8@sha256", "3.6.8/..", "3.6.18446744073709551616", "3.6.8-" + strings.Repeat("a", 128), ">=3.6.0", "3.6.8-", "3.6.8-a_b",
	} {
		c := cluster(t, "")
		c.Spec.Version = version
		expect(t, ValidateEtcdCluster(c), "Invalid spec.version")
	}
	c := cluster(t, "")
	c.Spec.Version = ""
	expect(t, ValidateEtcdCluster(c), "Required spec.version")
}

func TestRepository(t *testing.T) {
	for _, repository := range []string{
		"etcd", "quay.io/coreos/etcd", "localhost:5000/etcd", "REGISTRY.example.com:443/a/b-c/d_e/f__g.h", "[fd00::1]:5000/etcd", strings.Repeat("a", 255),
	} {
		c := cluster(t, "")
		c.Spec.Repository = repository
		expect(t, ValidateEtcdCluster(c))
	}
	for _, repository := range []string{
		"quay.io/coreos/etcd:v3.6.8", "etcd:latest", "quay.io/etcd@sha256:" + strings.Repeat("0", 64), "https://quay.io/etcd", "quay.io//etcd", "/etcd", "etcd/", "quay.io/Etcd",
		"a b", "etcd;reboot", "$(id)/etcd", "--flag", "../etcd", "quay.io/../etcd", "etcd\n", "quay.io:port/etcd", "-a/etcd", "user@host/etcd",
	} {
		c := cluster(t, "")
		c.Spec.Repository = repository
		expect(t, ValidateEtcdCluster(c), "Invalid spec.repository")
	}
	c := cluster(t, "")
	c.Spec.Repository = strings.Repeat("a", 256)
	expect(t, ValidateEtcdCluster(c), "TooLong spec.repository")
	c.Spec.Repository = ""
	expect(t, ValidateEtcdCluster(c), "Required spec.repository")
}

func TestTLS(t *testing.T) {
	runClusterCases(t, []specCase{
		{"none", "TLS: {}", nil},
		{"static, nothing chosen", "TLS: {static: {}}", nil},
		{"static", "TLS: {static: {operatorSecret: o, member: {serverSecret: s, peerSecret: p}}}", nil},
		{"static, peers only", "TLS: {static: {member: {peerSecret: p}}}", nil},
		{"static, clients only", "TLS: {static: {operatorSecret: o, member: {serverSecret: s}}}", nil},
		{"operator without members", "TLS: {static: {operatorSecret: o}}", []string{"Required spec.TLS.static.member.serverSecret"}},
		{"operator without server", "TLS: {static: {operatorSecret: o, member: {peerSecret: p}}}", []string{"Required spec.TLS.static.member.serverSecret"}},
		{"server without operator", "TLS: {static: {member: {serverSecret: s}}}", []string{"Required spec.TLS.static.operatorSecret"}},
		{"wrong names", "TLS: {static: {operatorSecret: ../o, member: {serverSecret: S, peerSecret: 'a/b'}}}", []string{
			"Invalid spec.TLS.static.operatorSecret", "Invalid spec.TLS.static.member.serverSecret", "Invalid spec.TLS.static.member.peerSecret",
		}},
		{"auto", "TLS: {auto: {}}", nil},
		{"auto and static", "TLS: {auto: {}, static: {}}", []string{"Forbidden spec.TLS.auto"}},
		{"certManager", "TLS: {certManager: {issuerRef: {name: ca}}}", nil},
		{"certManager, cluster-wide", "TLS: {certManager: {issuerRef: {name: ca, kind: ClusterIssuer}}}", nil},
		{"certManager and static", "TLS: {certManager: {issuerRef: {name: ca}}, static: {}}", []string{"Forbidden spec.TLS.certManager"}},
		{"certManager and auto", "TLS: {certManager: {issuerRef: {name: ca}}, auto: {}}", []string{"Forbidden spec.TLS.certManager"}},
		{"issuer without a name", "TLS: {certManager: {issuerRef: {}}}", []string{"Required spec.TLS.certManager.issuerRef.name"}},
		{"issuer with a wrong name", "TLS: {certManager: {issuerRef: {name: 'a b'}}}", []string{"Invalid spec.TLS.certManager.issuerRef.name"}},
		{"unknown kind", "TLS: {certManager: {issuerRef: {name: ca, kind: issuer}}}", []string{"NotSupported spec.TLS.certManager.issuerRef.kind"}},
		{"issuer of another group", "TLS: {certManager: {issuerRef: {name: ca, kind: AWSPCAIssuer, group: awspca.cert-manager.io}}}", nil},
		{"wrong kind of another group", "TLS: {certManager: {issuerRef: {name: ca, kind: 'a b', group: example.com}}}", []string{"Invalid spec.TLS.certManager.issuerRef.kind"}},
		{"wrong group", "TLS: {certManager: {issuerRef: {name: ca, group: 'a/b'}}}", []string{"Invalid spec.TLS.certManager.issuerRef.group"}},
	})
}

// A reference that no default has touched means an issuer of cert-manager itself.
func TestIssuerWithoutDefaults(t *testing.T) {
	c := cluster(t, "TLS: {certManager: {issuerRef: {name: ca}}}")
	c.Spec.TLS.CertManager.IssuerRef.Group = ""
	expect(t, ValidateEtcdCluster(c))
	c.Spec.TLS.CertManager.IssuerRef.Kind = "Other"
	expect(t, ValidateEtcdCluster(c), "NotSupported spec.TLS.certManager.issuerRef.kind")
}

func TestServices(t *testing.T) {
	runClusterCases(t, []specCase{
		{"everything", "services: {client: {type: LoadBalancer, annotations: {a/b: c}, labels: {team: x}, nodePort: 30079, loadBalancerClass: example.com/internal, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8'], externalTrafficPolicy: Local, trafficDistribution: PreferClose, ipFamilyPolicy: PreferDualStack}}", nil},
		{"node port", "services: {client: {type: NodePort, nodePort: 30079, externalTrafficPolicy: Cluster}}", nil},
		{"highest port", "services: {client: {type: NodePort, nodePort: 65535}}", nil},
		{"unknown type", "services: {client: {type: ExternalName}}", []string{"NotSupported spec.services.client.type"}},
		{"own labels", "services: {client: {labels: {app: x, etcd_cluster: y}}}", []string{"Forbidden spec.services.client.labels[app]", "Forbidden spec.services.client.labels[etcd_cluster]"}},
		{"wrong label", "services: {client: {labels: {a: 'b c'}}}", []string{"Invalid spec.services.client.labels"}},
		{"wrong annotation", "services: {client: {annotations: {'a b': c}}}", []string{"Invalid spec.services.client.annotations"}},
		{"outside of a cluster IP", "services: {client: {nodePort: 30079, externalTrafficPolicy: Local}}", []string{"Forbidden spec.services.client.nodePort", "Forbidden spec.services.client.externalTrafficPolicy"}},
		{"no port", "services: {client: {type: NodePort, nodePort: 65536}}", []string{"Invalid spec.services.client.nodePort"}},
		{"negative port", "services: {client: {type: NodePort, nodePort: -1}}", []string{"Invalid spec.services.client.nodePort"}},
		{"unknown policies", "services: {client: {type: NodePort, externalTrafficPolicy: x, trafficDistribution: y, ipFamilyPolicy: z}}", []string{
			"NotSupported spec.services.client.externalTrafficPolicy", "NotSupported spec.services.client.trafficDistribution", "NotSupported spec.services.client.ipFamilyPolicy",
		}},
		{"one family", "services: {client: {ipFamilies: [IPv6]}}", nil},
		{"one family of a single stack", "services: {client: {ipFamilyPolicy: SingleStack, ipFamilies: [IPv6]}}", nil},
		{"the first of two families", "services: {client: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6]}}", nil},
		{"two families", "services: {client: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}}", nil},
		{"two families, no policy", "services: {client: {ipFamilies: [IPv4, IPv6]}}", []string{"Invalid spec.services.client.ipFamilies"}},
		{"two families of a single stack", "services: {client: {ipFamilyPolicy: SingleStack, ipFamilies: [IPv4, IPv6]}}", []string{"Invalid spec.services.client.ipFamilies"}},
		{"a family twice", "services: {client: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv6]}}", []string{"Duplicate spec.services.client.ipFamilies[1]"}},
		{"three families", "services: {client: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4, IPv6, IPv4]}}", []string{"TooMany spec.services.client.ipFamilies"}},
		{"unknown families", "services: {client: {ipFamilyPolicy: PreferDualStack, ipFamilies: [ipv4, '']}}", []string{
			"NotSupported spec.services.client.ipFamilies[0]", "NotSupported spec.services.client.ipFamilies[1]",
		}},
		{"no load balancer", "services: {client: {type: NodePort, loadBalancerClass: a/b, loadBalancerSourceRanges: [10.0.0.0/8]}}", []string{
			"Forbidden spec.services.client.loadBalancerClass", "Forbidden spec.services.client.loadBalancerSourceRanges",
		}},
		{"wrong load balancer", "services: {client: {type: LoadBalancer, loadBalancerClass: 'a b', loadBalancerSourceRanges: [10.0.0.0/8, 10.0.0.1]}}", []string{
			"Invalid spec.services.client.loadBalancerClass", "Invalid spec.services.client.loadBalancerSourceRanges[1]",
		}},
	})
}
