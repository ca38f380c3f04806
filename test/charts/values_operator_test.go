// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// effect is what a value changes. With the values base the field is not want; with the
// values set in addition it is.
type effect struct {
	base, set     string // YAML
	object, field string
	want          string // YAML; absent: the object or the field does not exist
}

const absent = "absent"

func (e effect) check(t *testing.T, chart string) {
	t.Helper()
	var want any
	if e.want != absent {
		must(t, yaml.Unmarshal([]byte(e.want), &want), "parse %s", e.want)
	}
	before := defaults(chart, e.base).render(t).field(e.object, e.field)
	after := defaults(chart, merged(t, e.base, e.set)).render(t).field(e.object, e.field)
	if cmp.Equal(before, want) {
		t.Errorf("%s %s is %v without the value, too", e.object, e.field, before)
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("%s %s (- want, + got):\n%s", e.object, e.field, diff)
	}
}

// merged returns values with others over them.
func merged(t *testing.T, base, over string) string {
	t.Helper()
	values := parse(t, base)
	overlay(values, parse(t, over))
	text, err := yaml.Marshal(values)
	must(t, err, "write values")
	return string(text)
}

func overlay(values, over map[string]any) {
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		own, wasMap := values[key].(map[string]any)
		if isMap && wasMap {
			overlay(own, inner)
			continue
		}
		values[key] = value
	}
}

// valueCase is one value of a README with its effects.
type valueCase map[string][]effect

func (cases valueCase) run(t *testing.T, chart string) {
	t.Helper()
	for value, effects := range cases {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			for _, e := range effects {
				if e.set == "" {
					t.Fatal("the case sets nothing")
				}
				e.check(t, chart)
			}
		})
	}
	t.Run("every value has a case", func(t *testing.T) {
		t.Parallel()
		for _, row := range rows(t, chart) {
			if len(cases[row.value]) == 0 {
				t.Errorf("value %s of the README has no case", row.value)
			}
		}
	})
}

const (
	inContainer = "spec.template.spec.containers.0."
	inPod       = "spec.template.spec."
	external    = "apiserver: {storage: {type: external, external: {servers: [https://a:2379, https://b:2379]}}}"
	managed     = "apiserver: {storage: {type: managed}}"
	storageSet  = "StatefulSet/etcd-operator-system/etcd-operator-storage"
	backups     = "PersistentVolumeClaim/etcd-operator-system/etcd-operator-storage-backup"
	inTemplate  = "spec.volumeClaimTemplates.0.spec."
	pvc         = "PersistentVolumeClaim/etcd-operator-system/etcd-operator-apiserver-data"
	storageMap  = "ConfigMap/etcd-operator-system/etcd-operator-apiserver-storage"
	budget      = "PodDisruptionBudget/etcd-operator-system/etcd-operator-apiserver"
	controllers = "PodDisruptionBudget/etcd-operator-system/etcd-operator-controller"
	uninstall   = "Job/etcd-operator-system/etcd-operator-uninstall-rejected-while-etcdclusters-exist"
	alerts      = "PrometheusRule/etcd-operator-system/etcd-operator"
	scraped     = "PodMonitor/etcd-operator-system/etcd-operator-controller"
	class       = "PriorityClass//etcd-operator"

	registration = "APIService//v1beta2.etcd.database.coreos.com"
	certificate  = "Certificate/etcd-operator-system/etcd-operator-apiserver"

	ownCertificate = "{apiserver: {servingCertificate: {secretName: mine}}, apiService: {annotations: {cert-manager.io/inject-ca-from-secret: etcd-operator-system/mine}}}"
	issued         = "{apiserver: {servingCertificate: {issuerRef: {name: ca}}}, apiService: {annotations: {team: data}}}"
)

// several is two API servers on an etcd of their own.
var several = strings.Replace(external, "{storage", "{replicas: 2, storage", 1)

func TestOperatorValues(t *testing.T) {
	t.Parallel()
	cases := valueCase{}
	for _, part := range []valueCase{
		generalValues(), apiServerValues(), controllerValues(), clusterWideValues(), monitoringValues(),
		podValues("apiserver", apiServer, ""), podValues("controller", controller, ""), podValues("apiserver.storage.managed", storageSet, managed),
	} {
		for value, effects := range part {
			cases[value] = effects
		}
	}
	cases.run(t, operator)
}

// podValues are those that each program has for its pods.
func podValues(program, object, base string) valueCase {
	const inMetadata = "spec.template.metadata."
	given := func(value string) string {
		path := strings.Split(program, ".")
		return strings.Join(path, ": {") + ": {" + value + "}" + strings.Repeat("}", len(path)-1)
	}
	cases := valueCase{
		program + ".nodeSelector": {{base: base, set: given("nodeSelector: {disk: fast}"), object: object, field: inPod + "nodeSelector",
			want: "{kubernetes.io/os: linux, disk: fast}"}},
		program + ".tolerations":    {{base: base, set: given("tolerations: [{key: infra, operator: Exists}]"), object: object, field: inPod + "tolerations", want: "[{key: infra, operator: Exists}]"}},
		program + ".affinity":       {{base: base, set: given("affinity: {nodeAffinity: {}}"), object: object, field: inPod + "affinity", want: "{nodeAffinity: {}}"}},
		program + ".podLabels":      {{base: base, set: given("podLabels: {team: data}"), object: object, field: inMetadata + "labels.team", want: "data"}},
		program + ".podAnnotations": {{base: base, set: given("podAnnotations: {seen: 'yes'}"), object: object, field: inMetadata + "annotations.seen", want: "'yes'"}},
	}
	if object == storageSet {
		return cases
	}
	const mount = "extraVolumeMounts: [{name: extra, mountPath: /extra}]"
	account := strings.Replace(object, "Deployment", "ServiceAccount", 1)
	cases[program+".serviceAccount.annotations"] = []effect{{set: given("serviceAccount: {annotations: {role: r}}"), object: account, field: "metadata.annotations.role", want: "r"}}
	last := map[string]string{apiServer: "2", controller: "0"}[object] // those of the chart come first
	cases[program+".extraVolumes"] = []effect{{set: given("extraVolumes: [{name: extra, emptyDir: {}}]"), object: object, field: inPod + "volumes." + last + ".name", want: "extra"}}
	cases[program+".extraVolumeMounts"] = []effect{{set: given(mount), object: object, field: inContainer + "volumeMounts." + last + ".mountPath", want: "/extra"}}
	return cases
}

func generalValues() valueCase {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	return valueCase{
		"image.repository": {
			{set: "image: {repository: r.example.com/o}", object: apiServer, field: inContainer + "image", want: "r.example.com/o:v0.1.0"},
			{set: "image: {repository: r.example.com/o}", object: controller, field: inContainer + "image", want: "r.example.com/o:v0.1.0"},
		},
		"image.tag": {{set: "image: {tag: v9}", object: controller, field: inContainer + "image", want: "quay.io/etcd-operator/etcd-operator:v9"}},
		"image.digest": {{set: "image: {digest: '" + digest + "'}", object: apiServer, field: inContainer + "image",
			want: "quay.io/etcd-operator/etcd-operator:v0.1.0@" + digest}},
		"imagePullSecrets": {
			{set: "imagePullSecrets: [{name: pull}]", object: apiServer, field: inPod + "imagePullSecrets", want: "[{name: pull}]"},
			{set: "imagePullSecrets: [{name: pull}]", object: controller, field: inPod + "imagePullSecrets", want: "[{name: pull}]"},
			{set: "imagePullSecrets: [{name: pull}]", object: uninstall, field: inPod + "imagePullSecrets", want: "[{name: pull}]"},
		},
		"commonLabels": {
			{set: "commonLabels: {team: data}", object: controller, field: "metadata.labels.team", want: "data"},
			{set: "commonLabels: {team: data}", object: controller, field: inPod[:len(inPod)-len("spec.")] + "metadata.labels.team", want: "data"},
		},
		"apiService.annotations": {{set: "apiService: {annotations: {argocd.argoproj.io/sync-wave: '1'}}", object: registration,
			field: "metadata.annotations", want: "{argocd.argoproj.io/sync-wave: '1'}"}},
		"openshift": {
			{set: "openshift: true", object: apiServer, field: inPod + "securityContext.fsGroup", want: absent},
			{set: "openshift: true", object: uninstall, field: inPod + "securityContext.runAsUser", want: absent},
		},
		"uninstall.force": {{set: "uninstall: {force: true}", object: uninstall, want: absent}},
		"uninstall.image": {{set: "uninstall: {image: r.example.com/kubectl:v1}", object: uninstall, field: inContainer + "image", want: "r.example.com/kubectl:v1"}},
	}
}

func apiServerValues() valueCase {
	return valueCase{
		"apiserver.replicas": {{base: external, set: "apiserver: {replicas: 3}", object: apiServer, field: "spec.replicas", want: "3"}},
		"apiserver.storage.type": {
			{set: external, object: pvc, want: absent},
			{set: external, object: apiServer, field: "spec.strategy.type", want: "RollingUpdate"},
			{set: managed, object: pvc, want: absent},
			{set: managed, object: storageSet, field: "spec.replicas", want: "3"},
		},
		"apiserver.storage.managed.size": {{base: managed, set: "apiserver: {storage: {managed: {size: 5Gi}}}", object: storageSet,
			field: inTemplate + "resources.requests.storage", want: "5Gi"}},
		"apiserver.storage.managed.storageClassName": {{base: managed, set: "apiserver: {storage: {managed: {storageClassName: fast}}}", object: storageSet,
			field: inTemplate + "storageClassName", want: "fast"}},
		"apiserver.storage.managed.image": {{base: managed, set: "apiserver: {storage: {managed: {image: r.example.com/etcd:v3.6.16}}}", object: storageSet,
			field: inContainer + "image", want: "r.example.com/etcd:v3.6.16"}},
		"apiserver.storage.managed.resources": {{base: managed, set: "apiserver: {storage: {managed: {resources: {limits: {memory: 2Gi}}}}}", object: storageSet,
			field: inContainer + "resources.limits.memory", want: "2Gi"}},
		"apiserver.storage.managed.backup.enabled": {
			{base: managed, set: "apiserver: {storage: {managed: {backup: {enabled: false}}}}", object: backups, want: absent},
			{base: managed, set: "apiserver: {storage: {managed: {backup: {enabled: false}}}}", object: controller, field: inContainer + "args",
				want: "[--storage-service=etcd-operator-storage]"},
		},
		"apiserver.storage.managed.backup.size": {{base: managed, set: "apiserver: {storage: {managed: {backup: {size: 5Gi}}}}", object: backups,
			field: "spec.resources.requests.storage", want: "5Gi"}},
		"apiserver.storage.managed.backup.storageClassName": {{base: managed, set: "apiserver: {storage: {managed: {backup: {storageClassName: fast}}}}", object: backups,
			field: "spec.storageClassName", want: "fast"}},
		"apiserver.storage.embedded.backup.enabled": {
			{set: "apiserver: {storage: {embedded: {backup: {enabled: false}}}}", object: backups, want: absent},
			{set: "apiserver: {storage: {embedded: {backup: {enabled: false}}}}", object: controller, field: inContainer + "args",
				want: "[--storage-service=etcd-operator-storage, --storage-embedded-service=etcd-operator-apiserver]"},
		},
		"apiserver.storage.embedded.backup.size": {{set: "apiserver: {storage: {embedded: {backup: {size: 5Gi}}}}", object: backups,
			field: "spec.resources.requests.storage", want: "5Gi"}},
		"apiserver.storage.embedded.backup.storageClassName": {{set: "apiserver: {storage: {embedded: {backup: {storageClassName: fast}}}}", object: backups,
			field: "spec.storageClassName", want: "fast"}},
		"apiserver.storage.embedded.size": {{set: "apiserver: {storage: {embedded: {size: 5Gi}}}", object: pvc, field: "spec.resources.requests.storage", want: "5Gi"}},
		"apiserver.storage.embedded.storageClassName": {{set: "apiserver: {storage: {embedded: {storageClassName: fast}}}", object: pvc,
			field: "spec.storageClassName", want: "fast"}},
		"apiserver.storage.external.servers": {{set: external, object: storageMap, field: "data.servers", want: "https://a:2379,https://b:2379"}},
		"apiserver.storage.external.prefix": {{base: external, set: "apiserver: {storage: {external: {prefix: /mine}}}", object: storageMap,
			field: "data.prefix", want: "/mine"}},
		"apiserver.storage.external.secretName": {{base: external, set: "apiserver: {storage: {external: {secretName: mine}}}", object: apiServer,
			field: inPod + "volumes.0.secret.secretName", want: "mine"}},
		"apiserver.port": {
			{set: "apiserver: {port: 10250}", object: apiServer, field: inContainer + "args.0", want: "--secure-port=10250"},
			{set: "apiserver: {port: 10250}", object: apiServer, field: inContainer + "ports.0.containerPort", want: "10250"},
		},
		"apiserver.hostNetwork": {{set: "apiserver: {hostNetwork: true}", object: apiServer, field: inPod + "hostNetwork", want: "true"}},
		"apiserver.encryption": {{set: "apiserver: {encryption: true}", object: apiServer, field: inContainer + "args.4",
			want: "--encryption-provider-config=/etc/etcd-operator-encryption/config.yaml"}},
		"apiserver.servingCertificate.secretName": {
			{set: ownCertificate, object: apiServer, field: inContainer + "args.4", want: "--tls-cert-file=/etc/etcd-operator-serving/tls.crt"},
			{set: ownCertificate, object: apiServer, field: inPod + "volumes.2.secret", want: "{secretName: mine, defaultMode: 288}"},
		},
		"apiserver.servingCertificate.issuerRef": {
			{set: issued, object: registration, field: "metadata.annotations", want: "{cert-manager.io/inject-ca-from: etcd-operator-system/etcd-operator-apiserver, team: data}"},
			{set: issued, object: certificate, field: "spec", want: "{secretName: etcd-operator-apiserver-serving, usages: [server auth], issuerRef: {name: ca}, " +
				"dnsNames: [etcd-operator-apiserver.etcd-operator-system.svc]}"},
			{set: issued, object: apiServer, field: inPod + "volumes.2.secret.secretName", want: "etcd-operator-apiserver-serving"},
		},
		"apiserver.audit":  {{set: "apiserver: {audit: true}", object: apiServer, field: inContainer + "args.5", want: "--audit-log-path=-"}},
		"apiserver.pdb":    {{base: several, set: "apiserver: {pdb: false}", object: budget, want: absent}},
		"apiserver.spread": {{base: several, set: "apiserver: {spread: false}", object: apiServer, field: inPod + "topologySpreadConstraints", want: absent}},
		"apiserver.resources": {{set: "apiserver: {resources: {limits: {memory: 2Gi}}}", object: apiServer,
			field: inContainer + "resources.limits.memory", want: "2Gi"}},
		"apiserver.extraArgs": {{set: "apiserver: {extraArgs: [--v=4]}", object: apiServer, field: inContainer + "args.4", want: "--v=4"}},
		"apiserver.extraEnv": {{set: "apiserver: {extraEnv: [{name: GOMEMLIMIT, value: 1600MiB}]}", object: apiServer, field: inContainer + "env.1",
			want: "{name: GOMEMLIMIT, value: 1600MiB}"}},
		"apiserver.priorityClassName": {
			{set: "apiserver: {priorityClassName: mine}", object: apiServer, field: inPod + "priorityClassName", want: "mine"},
			{base: "controller: {priorityClassName: mine}", set: "apiserver: {priorityClassName: mine}", object: class, want: absent},
		},
	}
}

func controllerValues() valueCase {
	const arg = inContainer + "args.0"
	return valueCase{
		"controller.replicas":       {{set: "controller: {replicas: 2}", object: controller, field: "spec.replicas", want: "2"}},
		"controller.watchNamespace": {{base: "apiserver: {storage: {embedded: {backup: {enabled: false}}}}", set: "controller: {watchNamespace: ns}", object: controller, field: arg, want: "--namespace=ns"}},
		"controller.clusterWide":    {{set: "controller: {clusterWide: true}", object: controller, field: arg, want: "--cluster-wide"}},
		"controller.maxConcurrentBackups": {{set: "controller: {maxConcurrentBackups: 3}", object: controller, field: arg,
			want: "--max-concurrent-backups=3"}},
		"controller.secureMetrics": {{set: "controller: {secureMetrics: true}", object: controller, field: inContainer + "args.3", want: "--secure-metrics-addr=:8443"}},
		"controller.pdb":           {{base: "controller: {replicas: 2}", set: "controller: {pdb: false}", object: controllers, want: absent}},
		"controller.spread": {{base: "controller: {replicas: 2}", set: "controller: {spread: false}", object: controller,
			field: inPod + "topologySpreadConstraints", want: absent}},
		"controller.resources": {{set: "controller: {resources: {requests: {cpu: 1}}}", object: controller,
			field: inContainer + "resources.requests.cpu", want: "1"}},
		"controller.extraArgs": {{set: "controller: {extraArgs: [--image-registry=r.example.com]}", object: controller, field: inContainer + "args.3",
			want: "--image-registry=r.example.com"}},
		"controller.extraEnv": {{set: "controller: {extraEnv: [{name: GOGC, value: '100'}]}", object: controller, field: inContainer + "env.4",
			want: "{name: GOGC, value: '100'}"}},
		"controller.priorityClassName": {
			{set: "controller: {priorityClassName: ''}", object: controller, field: inPod + "priorityClassName", want: absent},
			{base: "apiserver: {priorityClassName: ''}", set: "controller: {priorityClassName: ''}", object: class, want: absent},
		},
	}
}

func clusterWideValues() valueCase {
	const aggregateTo = "metadata.labels.[rbac.authorization.k8s.io/aggregate-to-"
	return valueCase{
		"rbac.aggregate": {
			{set: "rbac: {aggregate: false}", object: "ClusterRole//etcd-operator:view", field: aggregateTo + "view]", want: absent},
			{set: "rbac: {aggregate: false}", object: "ClusterRole//etcd-operator:edit", field: aggregateTo + "edit]", want: absent},
			{set: "rbac: {aggregate: false}", object: "ClusterRole//etcd-operator:recover", field: aggregateTo + "admin]", want: absent},
		},
		"rbac.readTLSSecrets": {{set: "rbac: {readTLSSecrets: true}", object: "ClusterRoleBinding//etcd-operator-apiserver:read-tls",
			field: "roleRef.name", want: "etcd-operator-apiserver:read-tls"}},
		"rbac.policyParameters": {{set: "rbac: {policyParameters: true}", object: "ClusterRoleBinding//etcd-operator-apiserver:policy-parameters",
			field: "roleRef.name", want: "etcd-operator-apiserver:policy-parameters"}},
		"deletionProtection.policy": {
			{set: "deletionProtection: {policy: false}", object: "ValidatingAdmissionPolicy//etcd-operator-deletion-protection", want: absent},
			{set: "deletionProtection: {policy: false}", object: "ValidatingAdmissionPolicyBinding//etcd-operator-deletion-protection", want: absent},
			{set: "deletionProtection: {policy: false}", object: "ValidatingAdmissionPolicy//etcd-operator-accounts", want: absent},
			{set: "deletionProtection: {policy: false}", object: "ValidatingAdmissionPolicyBinding//etcd-operator-accounts", want: absent},
		},
		"existingEtcd.allowed": {{set: "existingEtcd: {allowed: false}", object: "ValidatingAdmissionPolicyBinding//etcd-operator-no-existing-etcd",
			field: "spec.policyName", want: "etcd-operator-no-existing-etcd"}},
		"networkPolicy.enabled": {{set: "networkPolicy: {enabled: true}", object: "NetworkPolicy/etcd-operator-system/default-deny",
			field: "spec.podSelector", want: "{}"}},
		"networkPolicy.monitoringNamespace": {{base: "networkPolicy: {enabled: true}", set: "networkPolicy: {monitoringNamespace: prometheus}",
			object: "NetworkPolicy/etcd-operator-system/etcd-operator-controller",
			field:  "spec.ingress.0.from.0.namespaceSelector.matchLabels.[kubernetes.io/metadata.name]", want: "prometheus"}},
		"networkPolicy.apiserverEgress": {{base: "networkPolicy: {enabled: true}", set: "networkPolicy: {apiserverEgress: [{ports: [{port: 9443}]}]}",
			object: "NetworkPolicy/etcd-operator-system/etcd-operator-apiserver", field: "spec.egress.2.ports.0.port", want: "9443"}},
	}
}

func monitoringValues() valueCase {
	const enabled, rule = "prometheusRule: {enabled: true}", "spec.groups.0.rules.0."
	return valueCase{
		"podMonitor.enabled":      {{set: "podMonitor: {enabled: true}", object: scraped, field: "spec.podMetricsEndpoints.0.port", want: "http"}},
		"podMonitor.labels":       {{base: "podMonitor: {enabled: true}", set: "podMonitor: {labels: {release: p}}", object: scraped, field: "metadata.labels.release", want: "p"}},
		"prometheusRule.enabled":  {{set: enabled, object: alerts, field: rule + "alert", want: "EtcdClusterQuorumLost"}},
		"prometheusRule.labels":   {{base: enabled, set: "prometheusRule: {labels: {release: p}}", object: alerts, field: "metadata.labels.release", want: "p"}},
		"prometheusRule.disabled": {{base: enabled, set: "prometheusRule: {disabled: [EtcdClusterQuorumLost]}", object: alerts, field: rule + "alert", want: "EtcdClusterNotAvailable"}},
		"prometheusRule.runbookBase": {{base: enabled, set: "prometheusRule: {runbookBase: 'https://wiki.example.com/etcd'}", object: alerts,
			field: rule + "annotations.runbook_url", want: "https://wiki.example.com/etcd#etcdclusterquorumlost"}},
	}
}
