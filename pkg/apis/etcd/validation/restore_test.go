// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import "testing"

const fromS3 = "backupStorageType: S3, s3: {path: b/k}"

func TestRestoreMetadata(t *testing.T) {
	r := restore(t, "{etcdCluster: {name: example}, "+fromS3+"}")
	r.Name, r.Namespace = "A/b", ""
	expect(t, ValidateEtcdRestore(r), "Invalid metadata.name", "Required metadata.namespace")
}

func TestRestoreSpec(t *testing.T) {
	template := func(fields string) string {
		return "{etcdCluster: {name: example}, backup: {name: b}, clusterTemplate: {" + fields + "}}"
	}
	for _, c := range []specCase{
		{"store", "{etcdCluster: {name: example}, " + fromS3 + "}", nil},
		{"backup", "{etcdCluster: {name: example}, backup: {name: nightly, revision: 7}, revisionBump: 0, decryption: {ageIdentitiesSecret: age}}", nil},
		{"no cluster", "{" + fromS3 + "}", []string{"Required spec.etcdCluster.name"}},
		{"wrong cluster", "{etcdCluster: {name: other/example}, " + fromS3 + "}", []string{"Invalid spec.etcdCluster.name"}},
		{"no source", "{etcdCluster: {name: example}}", []string{"Required spec.backup"}},
		{"place without a type", "{etcdCluster: {name: example}, s3: {path: b/k}}", []string{"Required spec.backupStorageType"}},
		{"both sources", "{etcdCluster: {name: example}, backup: {name: b}, " + fromS3 + "}", []string{"Forbidden spec.backupStorageType", "Forbidden spec.s3"}},
		{"proxies for a store", "{etcdCluster: {name: example}, " + fromS3 + ", job: {env: [{name: HTTPS_PROXY, value: 'http://proxy:3128'}]}}", nil},
		{"proxies for a backup", "{etcdCluster: {name: example}, backup: {name: b}, job: {env: [{name: HTTPS_PROXY, value: 'http://proxy:3128'}]}}", []string{"Forbidden spec.job.env"}},
		{"labels and annotations for a backup", "{etcdCluster: {name: example}, backup: {name: b}, job: {labels: {a: b}, annotations: {c: d}}}", []string{"Forbidden spec.job.labels", "Forbidden spec.job.annotations"}},
		{"empty settings and a place for a backup", "{etcdCluster: {name: example}, backup: {name: b}, job: {labels: {}, annotations: {}, env: [], nodeSelector: {disk: fast}}}", nil},
		{"labels and annotations for a store", "{etcdCluster: {name: example}, " + fromS3 + ", job: {labels: {a: b}, annotations: {c: d}}}", nil},
		{"backup without a name", "{etcdCluster: {name: example}, backup: {}}", []string{"Required spec.backup.name"}},
		{"wrong backup", "{etcdCluster: {name: example}, backup: {name: A, revision: 0}}", []string{"Invalid spec.backup.name", "Invalid spec.backup.revision"}},
		{"negative bump", "{etcdCluster: {name: example}, backup: {name: b}, revisionBump: -1}", []string{"Invalid spec.revisionBump"}},
		{"largest bump", "{etcdCluster: {name: example}, backup: {name: b, revision: 1}, revisionBump: 1000000000000000}", nil},
		{"bump too far", "{etcdCluster: {name: example}, backup: {name: b}, revisionBump: 1000000000000001}", []string{"Invalid spec.revisionBump"}},
		{"bump that leaves no room", "{etcdCluster: {name: example}, backup: {name: b}, revisionBump: 9223372036854775807}", []string{"Invalid spec.revisionBump"}},
		{"no identities", "{etcdCluster: {name: example}, backup: {name: b}, decryption: {}}", []string{"Required spec.decryption.ageIdentitiesSecret"}},
		{"wrong identities", "{etcdCluster: {name: example}, backup: {name: b}, decryption: {ageIdentitiesSecret: A}}", []string{"Invalid spec.decryption.ageIdentitiesSecret"}},
		{"a service account", "{etcdCluster: {name: example}, backup: {name: b}, serviceAccountName: backups}", nil},
		{"no service account", "{etcdCluster: {name: example}, " + fromS3 + ", serviceAccountName: ../default}", []string{"Invalid spec.serviceAccountName"}},
		{"template", template("metadata: {name: example, namespace: default, labels: {a: b}, annotations: {c: d}}, spec: {size: 3}"), nil},
		{"template with volumes", template("spec: {size: 3, pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"), nil},
		{"template without a size", template("spec: {}"), []string{"Required spec.clusterTemplate.spec.size"}},
		{"hibernated template", template("spec: {size: 0, pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"), []string{"Invalid spec.clusterTemplate.spec.size"}},
		{"empty template", template("spec: {size: 0}"), []string{"Invalid spec.clusterTemplate.spec.size"}},
		{"wrong template", template("spec: {size: 3, version: x, pod: {labels: {app: y}}}"), []string{"Invalid spec.clusterTemplate.spec.version", "Forbidden spec.clusterTemplate.spec.pod.labels[app]"}},
		{"wrong metadata", template("metadata: {labels: {'a b': c}, annotations: {'d e': f}, name: other, namespace: other, generateName: x, finalizers: [a/b], ownerReferences: [{name: x}]}, spec: {size: 3}"), []string{
			"Invalid spec.clusterTemplate.metadata.labels", "Invalid spec.clusterTemplate.metadata.annotations", "Invalid spec.clusterTemplate.metadata.name", "Invalid spec.clusterTemplate.metadata.namespace",
			"Forbidden spec.clusterTemplate.metadata.generateName", "Forbidden spec.clusterTemplate.metadata.finalizers", "Forbidden spec.clusterTemplate.metadata.ownerReferences",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdRestore(restore(t, c.spec)), c.want...)
		})
	}
}

func TestRestoreUpdate(t *testing.T) {
	from := restore(t, "{etcdCluster: {name: example}, "+fromS3+"}")
	same := from.DeepCopy()
	same.Labels = map[string]string{"a": "b"}
	expect(t, ValidateEtcdRestoreUpdate(same, from))
	expect(t, ValidateEtcdRestoreUpdate(restore(t, "{etcdCluster: {name: example}, backupStorageType: S3, s3: {path: b/l}}"), from), "Forbidden spec")
	expect(t, ValidateEtcdRestoreUpdate(restore(t, "{etcdCluster: {name: example}, backupStorageType: S3, s3: {path: l}}"), from), "Forbidden spec", "Invalid spec.s3.path")
	same.UID = "changed"
	expect(t, ValidateEtcdRestoreUpdate(same, from), "Invalid metadata.uid")

	written := restore(t, "{etcdCluster: {name: example}, "+fromS3+", clusterTemplate: {spec: {size: 1, etcd: {electionTimeout: 5000ms}}}}")
	stored := written.DeepCopy() // by a release that kept no text
	stored.Spec.ClusterTemplate.Spec.Etcd.ElectionTimeout = stored.Spec.ClusterTemplate.Spec.Etcd.ElectionTimeout.WithoutText()
	expect(t, ValidateEtcdRestoreUpdate(written, stored))
	stored.Spec.ClusterTemplate.Spec.Etcd.ElectionTimeout.Duration++
	expect(t, ValidateEtcdRestoreUpdate(written, stored), "Forbidden spec")

	huge := from.DeepCopy()
	parse(t, "{clusterTemplate: {spec: {size: 1, version: 3.6.8, repository: a, pod: {resources: {limits: {cpu: 1e999999999}}}}}}", &huge.Spec)
	expect(t, ValidateEtcdRestoreUpdate(huge, from), "Invalid spec.clusterTemplate.spec.pod.resources.limits[cpu]")

	wrong := restore(t, "{etcdCluster: {name: example}}")
	expect(t, ValidateEtcdRestoreUpdate(wrong.DeepCopy(), wrong))
}
