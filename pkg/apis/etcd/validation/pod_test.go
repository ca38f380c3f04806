// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestPod(t *testing.T) {
	runClusterCases(t, []specCase{
		{"empty", "pod: {}", nil},
		{"labels", "pod: {labels: {team: x, apps: y, etcd: z}, annotations: {a/b: 'any text'}}", nil},
		{"own labels", "pod: {labels: {app: x, etcd_node: y, etcd_: z}}", []string{"Forbidden spec.pod.labels[app]", "Forbidden spec.pod.labels[etcd_node]", "Forbidden spec.pod.labels[etcd_]", "Invalid spec.pod.labels"}},
		{"wrong label key", "pod: {labels: {'a b': c}}", []string{"Invalid spec.pod.labels"}},
		{"wrong label value", "pod: {labels: {a: 'b c'}}", []string{"Invalid spec.pod.labels"}},
		{"own annotation", "pod: {annotations: {etcd.version: 3.6.8}}", []string{"Forbidden spec.pod.annotations[etcd.version]"}},
		{"wrong annotation", "pod: {annotations: {'a b': c}}", []string{"Invalid spec.pod.annotations"}},
		{"domain", "pod: {ClusterDomain: .cluster.local}", nil},
		{"domain without a dot", "pod: {ClusterDomain: cluster.local}", []string{"Invalid spec.pod.ClusterDomain"}},
		{"wrong domain", "pod: {ClusterDomain: .cluster..local}", []string{"Invalid spec.pod.ClusterDomain"}},
		{"domain with shell", "pod: {ClusterDomain: .$(id)}", []string{"Invalid spec.pod.ClusterDomain"}},
		{"priority", "pod: {priorityClassName: system-cluster-critical}", nil},
		{"wrong priority", "pod: {priorityClassName: 'a b'}", []string{"Invalid spec.pod.priorityClassName"}},
		{"pull secrets", "pod: {imagePullSecrets: [{name: a}, {name: ''}, {name: A}]}", []string{"Required spec.pod.imagePullSecrets[1].name", "Invalid spec.pod.imagePullSecrets[2].name"}},
		{"pull policy", "pod: {imagePullPolicy: Never}", nil},
		{"unknown pull policy", "pod: {imagePullPolicy: Sometimes}", []string{"NotSupported spec.pod.imagePullPolicy"}},
		{"longest grace", "pod: {terminationGracePeriodSeconds: 2147483648}", nil},
		{"no grace", "pod: {terminationGracePeriodSeconds: 0}", nil},
		{"negative grace", "pod: {terminationGracePeriodSeconds: -1}", []string{"Invalid spec.pod.terminationGracePeriodSeconds"}},
		{"endless grace", "pod: {terminationGracePeriodSeconds: 2147483649}", []string{"Invalid spec.pod.terminationGracePeriodSeconds"}},
		{"users", "pod: {securityContext: {runAsUser: 1000, runAsGroup: 0, fsGroup: 1, supplementalGroups: [2]}, containerSecurityContext: {runAsUser: 0, runAsGroup: 3}}", nil},
		{"wrong users", "pod: {securityContext: {runAsUser: -1, runAsGroup: -2, fsGroup: -3, supplementalGroups: [1, -4]}, containerSecurityContext: {runAsUser: 4294967296, runAsGroup: -5}}", []string{
			"Invalid spec.pod.securityContext.runAsUser", "Invalid spec.pod.securityContext.runAsGroup", "Invalid spec.pod.securityContext.fsGroup",
			"Invalid spec.pod.securityContext.supplementalGroups[1]", "Invalid spec.pod.containerSecurityContext.runAsUser", "Invalid spec.pod.containerSecurityContext.runAsGroup",
		}},
		{"root that must not be", "pod: {securityContext: {runAsNonRoot: true, runAsUser: 0}, containerSecurityContext: {runAsNonRoot: true, runAsUser: 0}}", []string{
			"Invalid spec.pod.securityContext.runAsUser", "Invalid spec.pod.containerSecurityContext.runAsUser",
		}},
		{"root that may be, by default", "pod: {securityContext: {runAsUser: 0}, containerSecurityContext: {runAsNonRoot: true}}", nil},
		{"root that may be", "pod: {securityContext: {runAsNonRoot: false, runAsUser: 0}, containerSecurityContext: {runAsNonRoot: true, runAsUser: 1}}", nil},
		{"without effect", "pod: {busyboxImage: 'any $(text)', DNSTimeoutInSecond: -1}", nil},
		{"retention", "pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}}", nil},
		{"unknown retention", "pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep, whenScaled: retain}}", []string{
			"NotSupported spec.pod.persistentVolumeClaimRetentionPolicy.whenDeleted", "NotSupported spec.pod.persistentVolumeClaimRetentionPolicy.whenScaled",
		}},
	})
}

func TestEnv(t *testing.T) {
	runClusterCases(t, []specCase{
		{"all sources", `pod: {etcdEnv: [{name: A, value: 'any $(text)'}, {name: B}, {name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}},
			{name: D, valueFrom: {resourceFieldRef: {resource: limits.memory}}}, {name: E, valueFrom: {configMapKeyRef: {name: a, key: b}}}, {name: F, valueFrom: {secretKeyRef: {name: a, key: b}}}]}`, nil},
		{"owned by the controller, as old manifests may have it", "pod: {etcdEnv: [{name: ETCD_NAME, value: x}, {name: ETCD_DATA_DIR, value: /x}]}", nil},
		{"destructive", "pod: {etcdEnv: [{name: ETCD_FORCE_NEW_CLUSTER, value: 'true'}, {name: ETCD_CONFIG_FILE, value: /x}, {name: ETCD_FORCE_NEW_CLUSTER_BUMP_AMOUNT, value: '1'}, {name: FORCE_NEW_CLUSTER, value: x}]}", []string{
			"Forbidden spec.pod.etcdEnv[0].name", "Forbidden spec.pod.etcdEnv[1].name", "Forbidden spec.pod.etcdEnv[2].name",
		}},
		{"without a name", "pod: {etcdEnv: [{value: x}]}", []string{"Required spec.pod.etcdEnv[0].name"}},
		{"wrong name", "pod: {etcdEnv: [{name: 'A=B'}, {name: 'A B'}, {name: '1A'}]}", []string{"Invalid spec.pod.etcdEnv[0].name", "Invalid spec.pod.etcdEnv[1].name", "Invalid spec.pod.etcdEnv[2].name"}},
		{"value and source", "pod: {etcdEnv: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}", []string{"Forbidden spec.pod.etcdEnv[0].valueFrom"}},
		{"divisor", "pod: {etcdEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1e999999999}}}]}", []string{"Invalid spec.pod.etcdEnv[0].valueFrom.resourceFieldRef.divisor"}},
		{"no source", "pod: {etcdEnv: [{name: A, valueFrom: {}}]}", []string{"Invalid spec.pod.etcdEnv[0].valueFrom"}},
		{"two sources", "pod: {etcdEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}, secretKeyRef: {name: a, key: b}}}]}", []string{"Invalid spec.pod.etcdEnv[0].valueFrom"}},
		{"other two sources", "pod: {etcdEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}, configMapKeyRef: {name: a, key: b}}}]}", []string{"Invalid spec.pod.etcdEnv[0].valueFrom"}},
		{"file", "pod: {etcdEnv: [{name: A, valueFrom: {fileKeyRef: {volumeName: a, path: b, key: c}}}]}", []string{"Forbidden spec.pod.etcdEnv[0].valueFrom.fileKeyRef"}},
		{"empty sources", "pod: {etcdEnv: [{name: A, valueFrom: {fieldRef: {}}}, {name: B, valueFrom: {resourceFieldRef: {}}}, {name: C, valueFrom: {configMapKeyRef: {}}}, {name: D, valueFrom: {secretKeyRef: {}}}]}", []string{
			"Required spec.pod.etcdEnv[0].valueFrom.fieldRef.fieldPath", "Required spec.pod.etcdEnv[1].valueFrom.resourceFieldRef.resource",
			"Required spec.pod.etcdEnv[2].valueFrom.configMapKeyRef.name", "Required spec.pod.etcdEnv[2].valueFrom.configMapKeyRef.key",
			"Required spec.pod.etcdEnv[3].valueFrom.secretKeyRef.name", "Required spec.pod.etcdEnv[3].valueFrom.secretKeyRef.key",
		}},
		{"wrong references", "pod: {etcdEnv: [{name: A, valueFrom: {secretKeyRef: {name: other/a, key: a/b}}}]}", []string{
			"Invalid spec.pod.etcdEnv[0].valueFrom.secretKeyRef.name", "Invalid spec.pod.etcdEnv[0].valueFrom.secretKeyRef.key",
		}},
	})
}

func TestEnvValueIsNotRepeated(t *testing.T) {
	c := cluster(t, "pod: {etcdEnv: [{name: A}]}")
	c.Spec.Pod.EtcdEnv[0].Value = "hunter2\x00"
	c.Spec.Pod.EtcdEnv[0].ValueFrom = &corev1.EnvVarSource{}
	errs := ValidateEtcdCluster(c)
	expect(t, errs, "Forbidden spec.pod.etcdEnv[0].value", "Forbidden spec.pod.etcdEnv[0].valueFrom", "Invalid spec.pod.etcdEnv[0].valueFrom")
	if text := errs.ToAggregate().Error(); strings.Contains(text, "hunter2") {
		t.Errorf("error repeats the value: %s", text)
	}
}

func TestScheduling(t *testing.T) {
	const affinity = "spec.pod.affinity."
	runClusterCases(t, []specCase{
		{"node selector", "pod: {nodeSelector: {kubernetes.io/os: linux}}", nil},
		{"wrong node selector", "pod: {nodeSelector: {'a b': c}}", []string{"Invalid spec.pod.nodeSelector"}},
		{"tolerations", "pod: {tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Equal, effect: NoSchedule}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]}", nil},
		{"unknown effect", "pod: {tolerations: [{key: a, effect: Never}]}", []string{"NotSupported spec.pod.tolerations[0].effect"}},
		{"unknown operator", "pod: {tolerations: [{key: a, operator: In}]}", []string{"NotSupported spec.pod.tolerations[0].operator"}},
		{"wrong key", "pod: {tolerations: [{key: 'a b'}]}", []string{"Invalid spec.pod.tolerations[0].key"}},
		{"no key", "pod: {tolerations: [{value: b}]}", []string{"Invalid spec.pod.tolerations[0].operator"}},
		{"value where none belongs", "pod: {tolerations: [{key: a, operator: Exists, value: b}]}", []string{"Invalid spec.pod.tolerations[0].value"}},
		{"wrong value", "pod: {tolerations: [{key: a, value: 'b c'}]}", []string{"Invalid spec.pod.tolerations[0].value"}},
		{"seconds without effect", "pod: {tolerations: [{key: a, tolerationSeconds: 3}]}", []string{"Forbidden spec.pod.tolerations[0].tolerationSeconds"}},

		{"node affinity", `pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			{key: a, operator: In, values: [b]}, {key: a, operator: NotIn, values: [b]}, {key: a, operator: Exists}, {key: a, operator: DoesNotExist}, {key: a, operator: Gt, values: ['1']}, {key: a, operator: Lt, values: ['1']}],
			matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {}}]}}}`, nil},
		{"no terms", "pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}", []string{"Required " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"}},
		{"wrong terms", `pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			{key: 'a b', operator: Exists}, {key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}, {key: a, operator: Equals}], matchFields: [{key: spec.x, operator: Exists}, {key: metadata.name, operator: In}]}]}}}}`, []string{
			"Invalid " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key",
			"Required " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values",
			"Forbidden " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[2].values",
			"Required " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].values",
			"NotSupported " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[4].operator",
			"NotSupported " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key",
			"Required " + affinity + "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[1].values",
		}},
		{"wrong preference", "pod: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: In}]}}]}}}", []string{
			"Invalid " + affinity + "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
			"Required " + affinity + "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values",
		}},
		{"pod affinity", "pod: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {a: b}}, namespaces: [x]}]}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}}}", nil},
		{"wrong pod affinity", "pod: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [{key: a, operator: Never}]}, namespaceSelector: {matchExpressions: [{key: a, operator: In}]}, namespaces: [X]}]}}}", []string{
			"Required " + affinity + "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
			"Invalid " + affinity + "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator",
			"Required " + affinity + "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchExpressions[0].values",
			"Invalid " + affinity + "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces[0]",
		}},
		{"wrong pod anti-affinity", "pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: 'a b'}], preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {}}]}}}", []string{
			"Invalid " + affinity + "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
			"Invalid " + affinity + "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
			"Required " + affinity + "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey",
		}},
	})
}

func TestSpread(t *testing.T) {
	const at = "spec.pod.topologySpreadConstraints"
	runClusterCases(t, []specCase{
		{"everything", "pod: {topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, minDomains: 1, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore, matchLabelKeys: [a/b], labelSelector: {matchLabels: {a: b}}}, {topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}", nil},
		{"twice", "pod: {topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: a, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}", []string{"Duplicate " + at + "[1]"}},
		{"empty", "pod: {topologySpreadConstraints: [{}]}", []string{"Required " + at + "[0].topologyKey", "Invalid " + at + "[0].maxSkew", "Required " + at + "[0].whenUnsatisfiable"}},
		{"wrong", "pod: {topologySpreadConstraints: [{topologyKey: 'a b', maxSkew: -1, whenUnsatisfiable: Never, minDomains: 0, nodeAffinityPolicy: x, nodeTaintsPolicy: y, matchLabelKeys: ['c d'], labelSelector: {matchLabels: {'e f': g}}}]}", []string{
			"Invalid " + at + "[0].topologyKey", "Invalid " + at + "[0].maxSkew", "NotSupported " + at + "[0].whenUnsatisfiable", "Invalid " + at + "[0].minDomains", "Forbidden " + at + "[0].minDomains",
			"NotSupported " + at + "[0].nodeAffinityPolicy", "NotSupported " + at + "[0].nodeTaintsPolicy", "Invalid " + at + "[0].matchLabelKeys[0]", "Invalid " + at + "[0].labelSelector.matchLabels",
		}},
	})
}

func TestResources(t *testing.T) {
	runClusterCases(t, []specCase{
		{"usual", "pod: {resources: {requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}, limits: {memory: 1Gi}}}", nil},
		{"extended", "pod: {resources: {requests: {hugepages-2Mi: 4Mi, example.com/device: 1}, limits: {hugepages-2Mi: 4Mi, example.com/device: 1}}}", nil},
		{"limits only", "pod: {resources: {limits: {cpu: 1, example.com/device: 1}}}", nil},
		{"more than the limit", "pod: {resources: {requests: {memory: 2Gi, cpu: 1}, limits: {memory: 1Gi, cpu: 1}}}", []string{"Invalid spec.pod.resources.requests[memory]"}},
		{"negative", "pod: {resources: {requests: {cpu: -1}, limits: {memory: -1}}}", []string{"Invalid spec.pod.resources.requests[cpu]", "Invalid spec.pod.resources.limits[memory]"}},
		{"not of a container", "pod: {resources: {limits: {storage: 1Gi, cpus: 1}}}", []string{"Invalid spec.pod.resources.limits[storage]", "Invalid spec.pod.resources.limits[cpus]"}},
		{"wrong name", "pod: {resources: {limits: {'a b/c': 1}}}", []string{"Invalid spec.pod.resources.limits[a b/c]"}},
		{"overcommitted", "pod: {resources: {requests: {example.com/a: 1, example.com/b: 1}, limits: {example.com/b: 2}}}", []string{"Invalid spec.pod.resources.requests[example.com/a]", "Invalid spec.pod.resources.requests[example.com/b]"}},
		{"no CPU", "pod: {resources: {requests: {cpu: 0}}}", nil},
		{"beyond writing out", "pod: {resources: {requests: {cpu: 1e999999999, memory: 1}, limits: {cpu: 1, memory: 1e999999999}}}", []string{"Invalid spec.pod.resources.requests[cpu]", "Invalid spec.pod.resources.limits[memory]"}},
		{"many digits", "pod: {resources: {limits: {cpu: 1" + strings.Repeat("0", 40) + "}}}", []string{"Invalid spec.pod.resources.limits[cpu]"}},
		{"dynamic resources", "pod: {resources: {claims: [{name: a}]}}", []string{"Forbidden spec.pod.resources.claims"}},
	})
}

func TestMeasurable(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-1": true, "1n": true, "8Ei": true, "1e30": true, "1e31": false, "-1e31": false, "1e999999999": false,
		"340282366920938463463374607431": true, "340282366920938463463374607432": false,
	} {
		if got := hasExactValue(resource.MustParse(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestPVCSpec(t *testing.T) {
	const at = "spec.pod.persistentVolumeClaimSpec."
	const modes, size = "accessModes: [ReadWriteOnce], ", "resources: {requests: {storage: 1Gi}}, "
	pvc := func(fields string) string { return "pod: {persistentVolumeClaimSpec: {" + fields + "}}" }
	spec := func(fields string) string { return pvc(modes + size + fields) }
	runClusterCases(t, []specCase{
		{"usual", spec("storageClassName: fast, volumeMode: Filesystem, selector: {matchLabels: {a: b}}, volumeAttributesClassName: gold"), nil},
		{"no class", spec("storageClassName: ''"), nil},
		{"limited", pvc(modes + "resources: {requests: {storage: 1Gi}, limits: {storage: 1Gi}}"), nil},
		{"empty", "pod: {persistentVolumeClaimSpec: {}}", []string{"Required " + at + "accessModes", "Required " + at + "resources.requests[storage]"}},
		{"no storage", pvc(modes + "resources: {requests: {storage: 0}}"), []string{"Invalid " + at + "resources.requests[storage]"}},
		{"negative storage", pvc(modes + "resources: {requests: {storage: -1Gi}}"), []string{"Invalid " + at + "resources.requests[storage]"}},
		{"beyond writing out", pvc(modes + "resources: {requests: {storage: 1e999999999}, limits: {storage: 1Gi, other: 1e999999999}}"), []string{"Invalid " + at + "resources.requests[storage]", "Invalid " + at + "resources.limits[other]"}},
		{"more than the limit", pvc(modes + "resources: {requests: {storage: 2Gi}, limits: {storage: 1Gi}}"), []string{"Invalid " + at + "resources.requests[storage]"}},
		{"modes", pvc(size + "accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany]"), nil},
		{"single pod", pvc(size + "accessModes: [ReadWriteOncePod]"), nil},
		{"unknown mode", pvc(size + "accessModes: [ReadWriteOnce, RWO]"), []string{"NotSupported " + at + "accessModes[1]"}},
		{"read only", pvc(size + "accessModes: [ReadOnlyMany]"), []string{"Forbidden " + at + "accessModes"}},
		{"single pod and more", pvc(size + "accessModes: [ReadWriteOncePod, ReadWriteOnce]"), []string{"Forbidden " + at + "accessModes"}},
		{"wrong names", spec("storageClassName: A, volumeAttributesClassName: B"), []string{"Invalid " + at + "storageClassName", "Invalid " + at + "volumeAttributesClassName"}},
		{"block", spec("volumeMode: Block"), []string{"NotSupported " + at + "volumeMode"}},
		{"one volume for all", spec("volumeName: pv-1"), []string{"Forbidden " + at + "volumeName"}},
		{"wrong selector", spec("selector: {matchLabels: {'a b': c}}"), []string{"Invalid " + at + "selector.matchLabels"}},
		{"not empty", spec("dataSource: {kind: PersistentVolumeClaim, name: x}, dataSourceRef: {kind: PersistentVolumeClaim, name: x}"), []string{"Forbidden " + at + "dataSource", "Forbidden " + at + "dataSourceRef"}},
	})
}

func TestPodPolicyAlone(t *testing.T) {
	// A spec that no decoder has touched may lack everything.
	c := &v1beta2.EtcdCluster{ObjectMeta: meta("example")}
	expect(t, ValidateEtcdCluster(c), "Required spec.size", "Required spec.repository", "Required spec.version")
}
