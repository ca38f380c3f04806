// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

const (
	example      = "EtcdCluster/default/example"
	members      = "NetworkPolicy/default/example-etcd-members"
	inPVC        = "spec.pod.persistentVolumeClaimSpec."
	backupPVC    = "PersistentVolumeClaim/default/example-backups"
	withPolicies = "networkPolicy: {enabled: true}"
)

func TestClusterValues(t *testing.T) {
	t.Parallel()
	const namespaceOf = ".from.0.namespaceSelector.matchLabels.[kubernetes.io/metadata.name]"
	valueCase{
		"size":               {{set: "size: 5", object: example, field: "spec.size", want: "5"}},
		"version":            {{set: "version: 3.6.16", object: example, field: "spec.version", want: "3.6.16"}},
		"deletionProtection": {{set: "deletionProtection: true", object: example, field: "spec.deletionProtection", want: "true"}},
		"storage.size": {
			{set: "storage: {size: 20Gi}", object: example, field: inPVC + "resources.requests.storage", want: "20Gi"},
			{set: "storage: {size: ''}", object: example, field: "spec.pod", want: absent},
		},
		"storage.storageClassName": {{set: "storage: {storageClassName: fast}", object: example, field: inPVC + "storageClassName", want: "fast"}},
		"storage.whenDeleted": {{set: "storage: {whenDeleted: Delete}", object: example,
			field: "spec.pod.persistentVolumeClaimRetentionPolicy.whenDeleted", want: "Delete"}},
		"resources": {{set: "resources: {limits: {memory: 2Gi}}", object: example, field: "spec.pod.resources", want: "{limits: {memory: 2Gi}}"}},
		"tls":       {{set: "tls: {auto: {}}", object: example, field: "spec.TLS", want: "{auto: {}}"}},
		"clients":   {{set: "clients: [{name: shop}]", object: example, field: "spec.clients", want: "[{name: shop}]"}},
		"backup": {{set: "backup: {storageType: S3, s3: {path: b/k}, schedule: '0 1 * * *'}", object: example, field: "spec.backup",
			want: "{storageType: S3, s3: {path: b/k}, schedule: '0 1 * * *'}"}},
		"backup.volume.size": {
			{set: "backup: {volume: {size: 5Gi}}", object: example, field: "spec.backup",
				want: "{storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: example-backups, path: etcd}}"},
			{set: "backup: {volume: {size: 5Gi}}", object: backupPVC, field: "spec", want: "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}"},
			{set: "backup: {volume: {size: 5Gi}}", object: backupPVC, field: "metadata.annotations.[helm.sh/resource-policy]", want: "keep"},
			{base: "backup: {volume: {size: 5Gi}}", set: "backup: {schedule: '0 1 * * *', retention: {count: 3}, persistentVolumeClaim: {path: a}}", object: example, field: "spec.backup",
				want: "{storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: example-backups, path: a}, schedule: '0 1 * * *', retention: {count: 3}}"},
		},
		"backup.volume.storageClassName": {{base: "backup: {volume: {size: 5Gi}}", set: "backup: {volume: {storageClassName: slow}}", object: backupPVC,
			field: "spec.storageClassName", want: "slow"}},
		"spec": {
			{set: "spec: {paused: true}", object: example, field: "spec.paused", want: "true"},
			{set: "spec: {pod: {labels: {team: data}}}", object: example, field: "spec.pod.labels.team", want: "data"},
			{base: "spec: {pod: {labels: {team: data}}}", set: "storage: {size: 9Gi}", object: example, field: inPVC + "resources.requests.storage", want: "9Gi"},
		},
		"networkPolicy.enabled": {{set: withPolicies, object: members, field: "spec.podSelector.matchLabels.app", want: "etcd"}},
		"networkPolicy.clients": {
			{base: withPolicies, set: "networkPolicy: {clients: [{podSelector: {}}]}", object: members, field: "spec.ingress.0.from", want: "[{podSelector: {}}]"},
			{base: withPolicies, set: "networkPolicy: {clients: []}", object: members, field: "spec.ingress.4", want: absent},
		},
		"networkPolicy.operatorNamespace":   {{base: withPolicies, set: "networkPolicy: {operatorNamespace: o}", object: members, field: "spec.ingress.3" + namespaceOf, want: "o"}},
		"networkPolicy.monitoringNamespace": {{base: withPolicies, set: "networkPolicy: {monitoringNamespace: m}", object: members, field: "spec.ingress.4" + namespaceOf, want: "m"}},
		"networkPolicy.egress": {{base: withPolicies, set: "networkPolicy: {egress: [{ports: [{port: 9000}]}]}",
			object: "NetworkPolicy/default/example-etcd-dns-and-store", field: "spec.egress.2.ports.0.port", want: "9000"}},
		"podMonitor.enabled": {{set: "podMonitor: {enabled: true}", object: "PodMonitor/default/example-etcd", field: "spec.selector.matchLabels.etcd_cluster", want: "example"}},
		"podMonitor.labels": {{base: "podMonitor: {enabled: true}", set: "podMonitor: {labels: {release: p}}", object: "PodMonitor/default/example-etcd",
			field: "metadata.labels.release", want: "p"}},
	}.run(t, cluster)
}

// TestBackupVolumeOnRequest: without backup.volume.size there is no PVC for backups.
func TestBackupVolumeOnRequest(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", "backup: null", "backup: {volume: null}", "backup: {storageType: S3, s3: {path: a/b}}"} {
		if _, found := defaults(cluster, values).render(t)[backupPVC]; found {
			t.Errorf("with %q there is a PVC for backups", values)
		}
	}
}

// TestClusterIsValid decodes rendered EtcdClusters as the API server does, and validates them.
func TestClusterIsValid(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"defaults":      "",
		"production":    read(t, "charts", cluster, "ci", "backup-values.yaml"),
		"hibernated":    "size: 0",
		"no volumes":    "storage: {size: ''}",
		"cert-manager":  "tls: {certManager: {issuerRef: {kind: Issuer, name: etcd-ca}}}",
		"own Secrets":   "tls: {static: {member: {peerSecret: p, serverSecret: s}, operatorSecret: o}}",
		"to a volume":   "backup: {storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: backups, path: etcd}}",
		"kept volume":   "backup: {volume: {size: 5Gi}, schedule: '0 1 * * *', verify: Restore}",
		"no backup":     "backup: null",
		"large numbers": "spec: {etcd: {snapshotCount: 10000000}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, ok := defaults(cluster, values).render(t)[example]
			if !ok {
				t.Fatal("there is no EtcdCluster")
			}
			data, err := json.Marshal(object.Object)
			must(t, err, "write the EtcdCluster")
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.DisallowUnknownFields()
			decoded := &v1beta2.EtcdCluster{}
			must(t, decoder.Decode(decoded), "decode the EtcdCluster %s", data)
			scheme := runtime.NewScheme()
			must(t, v1beta2.AddToScheme(scheme), "register the types")
			scheme.Default(decoded)
			if decoded.Spec.Version == "" {
				decoded.Spec.Version = v1beta2.DefaultVersion
			}
			if errs := validation.ValidateEtcdCluster(decoded); len(errs) > 0 {
				text, _ := yaml.Marshal(object.Object)
				t.Errorf("%v\n%s", errs.ToAggregate(), text)
			}
		})
	}
}

// TestProtectionIsAlwaysWritten: without the field an upgrade would not lift the protection.
func TestProtectionIsAlwaysWritten(t *testing.T) {
	t.Parallel()
	if got := defaults(cluster, "").render(t).field(example, "spec.deletionProtection"); got != false {
		t.Errorf("spec.deletionProtection is %v, want false", got)
	}
}

// TestClusterNotes: the notes of each installation name the next commands and what helm
// uninstall does.
func TestClusterNotes(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]string{
		"":                {"kubectl wait -n default --for=condition=Ready --timeout=5m etcd/example", "http://example-client:2379", "No backups are made", "keeps the PVCs"},
		"tls: {auto: {}}": {"https://example-client:2379", "Secret example-client-tls"},
		"clients: [{name: shop}, {name: a, secretName: b}]": {"Secret example-shop-binding has what application shop needs", "Secret b has what application a needs"},
		"deletionProtection: true":                          {`kubectl patch etcd example -n default --type=merge -p '{"spec":{"deletionProtection":false}}'`},
		"storage: {whenDeleted: Delete}":                    {"and so all data"},
		"storage: {size: ''}":                               {"members have no volumes"},
		"backup: {storageType: S3, s3: {path: a/b}, schedule: '0 1 * * *'}": {`Backups are made at "0 1 * * *".`,
			"kubectl etcd backup example -n default", "kubectl get etcdbackups -n default"},
		"backup: {volume: {size: 5Gi}}": {"kubectl etcd backup example -n default", "PVC example-backups, which helm uninstall keeps",
			"kubectl delete pvc -n default example-backups"},
	} {
		text := noteText(t, defaults(cluster, values))
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("with %q the notes lack %q:\n%s", values, part, text)
			}
		}
	}
}

func noteText(t *testing.T, r release) string {
	t.Helper()
	files, err := r.files(t)
	must(t, err, "render the notes of %s", r.chart)
	return files[notes]
}
