// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// celRules are the rules of pkg/apis/etcd/validation that compare fields, or the old and the new
// object. Bounds of lists, maps and strings are those that the kube-apiserver needs to estimate
// what a rule costs; the API server has none there. docs/explanation/bench-api.md lists the rules
// that CEL cannot say.
func celRules() []overlay {
	overlays := []overlay{
		{"", rules(rule("size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", "the name must be a DNS label of at most 52 characters"))},
		{"spec", rules(
			rule("self.size > 0 || (has(self.pod) && has(self.pod.persistentVolumeClaimSpec))", "size may be 0 only where every member has a volume"),
			rule("has(self.TLS) == has(oldSelf.TLS)", "TLS may not be switched on or off"),
			rule("(has(self.pod) && has(self.pod.ClusterDomain) ? self.pod.ClusterDomain : '') == (has(oldSelf.pod) && has(oldSelf.pod.ClusterDomain) ? oldSelf.pod.ClusterDomain : '')", "ClusterDomain may not change"),
			rule("(has(self.pod) && has(self.pod.persistentVolumeClaimSpec)) == (has(oldSelf.pod) && has(oldSelf.pod.persistentVolumeClaimSpec))", "volumes may not be added or removed"),
			rule("!has(self.imageDigest) || !has(oldSelf.imageDigest) || self.version == oldSelf.version || self.imageDigest != oldSelf.imageDigest", "imageDigest belongs to the old version"),
		)},
		{"spec.version", rules(rule("int(self.split('.')[1]) >= int(oldSelf.split('.')[1]) && int(self.split('.')[1]) <= int(oldSelf.split('.')[1]) + 1", "the minor version may go up by one only"))},
	}
	return append(append(overlays, etcdRules()...), podRules()...)
}

func etcdRules() []overlay {
	return []overlay{
		{"spec.etcd.quotaBackendBytes", object{"maxLength": 64}},
		{"spec.etcd.heartbeatInterval", object{"maxLength": 32}},
		{"spec.etcd.electionTimeout", object{"maxLength": 32}},
		{"spec.etcd", rules(
			rule("!has(self.quotaBackendBytes) || "+quantityOf("self.quotaBackendBytes")+".compareTo(quantity('1Mi')) >= 0", "quotaBackendBytes must be at least 1Mi"),
			rule("!has(self.electionTimeout) || duration(self.electionTimeout) <= duration('50s')", "electionTimeout must be at most 50s"),
			rule("!has(self.electionTimeout) || !has(self.heartbeatInterval) || duration(self.electionTimeout).getMilliseconds() >= duration(self.heartbeatInterval).getMilliseconds() * 5", "electionTimeout must be at least five heartbeat intervals"),
		)},
		{"spec.etcd.extraArgs", object{"maxItems": 64}},
		{"spec.etcd.extraArgs.[]", object{"maxLength": 512}},
		{"spec.etcd.extraArgs", rules(
			rule("self.all(a, a.matches('^--[a-z][a-z0-9-]*(=[^ ]*)?$'))", "each argument must have the form --flag=value"),
			rule("!self.exists(a, a.matches('^--(name|data-dir|wal-dir|listen-|initial-|advertise-|discovery|cert-file|key-file|peer-|strict-reconfig-check|force-new-cluster|config-file)'))", "the flag belongs to the controller"),
		)},
	}
}

func podRules() []overlay {
	const pvc = "spec.pod.persistentVolumeClaimSpec"
	return []overlay{
		{"spec.pod.labels", object{"maxProperties": 64}},
		{"spec.pod.labels", rules(rule("self.all(k, k != 'app' && !k.startsWith('etcd_'))", "the label belongs to the controller"))},
		{"spec.pod.annotations", rules(rule("!('etcd.version' in self)", "the annotation belongs to the controller"))},
		{"spec.pod.resources.requests", object{"maxProperties": 16}},
		{"spec.pod.resources.limits", object{"maxProperties": 16}},
		{"spec.pod.resources.requests.{}", object{"maxLength": 64}},
		{"spec.pod.resources.limits.{}", object{"maxLength": 64}},
		{pvc + ".resources.requests.{}", object{"maxLength": 64}},
		{"spec.pod.resources", rules(
			rule("!has(self.claims) || size(self.claims) == 0", "the pods have no resource claims"),
			rule("!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || "+quantityOf("self.requests[k]")+".compareTo("+quantityOf("self.limits[k]")+") <= 0)", "a request must not be more than the limit"),
		)},
		{"spec.pod.etcdEnv", object{"maxItems": 256}},
		{"spec.pod.etcdEnv.[]", rules(rule("!has(self.valueFrom) || !has(self.value) || self.value == ''", "valueFrom may not be set together with value"))},
		{pvc + ".accessModes", rules(rule("self.exists(m, m != 'ReadOnlyMany')", "one mode must allow writing"))},
		{pvc, rules(
			rule("!has(self.volumeName) && !has(self.dataSource) && !has(self.dataSourceRef)", "every member starts on an empty volume of its own"),
			rule("!has(self.volumeMode) || self.volumeMode == 'Filesystem'", "volumeMode must be Filesystem"),
			rule("self.accessModes == oldSelf.accessModes", "accessModes may not change"),
			rule("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)", "storageClassName may not change"),
			rule("!has(self.resources.requests) || !has(oldSelf.resources.requests) || !('storage' in self.resources.requests) || !('storage' in oldSelf.resources.requests) || "+
				quantityOf("self.resources.requests['storage']")+".compareTo("+quantityOf("oldSelf.resources.requests['storage']")+") >= 0", "volumes cannot shrink"),
		)},
	}
}
