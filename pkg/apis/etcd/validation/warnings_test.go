// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// warned compares the fields that warnings are about.
func warned(t *testing.T, warnings []string, want ...string) {
	t.Helper()
	var fields []string
	for _, warning := range warnings {
		name, rest, found := strings.Cut(warning, ": ")
		if !found || rest == "" || strings.ContainsAny(warning, "\n\r") {
			t.Errorf("not of the form field: text: %q", warning)
		}
		fields = append(fields, name)
	}
	slices.Sort(fields)
	slices.Sort(want)
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("wrong warnings (-want +got):\n%s\n%s", diff, strings.Join(warnings, "\n"))
	}
}

func TestClusterWarnings(t *testing.T) {
	const s3 = "storageType: S3, s3: {path: b/k}"
	for _, c := range []specCase{
		{"none", "{pod: {etcdEnv: [{name: ETCD_LOG_LEVEL, value: info}, {name: NAME, value: x}]}, etcd: {quotaBackendBytes: 8Gi, extraArgs: [--enable-pprof]}, backup: {schedule: '@daily', timeZone: UTC, retention: {}, " + s3 + "}}", nil},
		{"even", "size: 4", []string{"spec.size", "spec.pod.persistentVolumeClaimSpec"}},
		{"two", "size: 2", []string{"spec.size"}},
		{"three without volumes", "size: 3", []string{"spec.pod.persistentVolumeClaimSpec"}},
		{"three without volumes, with a policy", "{size: 3, pod: {}}", []string{"spec.pod.persistentVolumeClaimSpec"}},
		{"three with volumes", "{size: 3, pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce]}}}", nil},
		{"volumes for one pod", "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOncePod]}}", nil},
		{"shared volumes", "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce, ReadWriteMany]}}", []string{"spec.pod.persistentVolumeClaimSpec.accessModes"}},
		{"what limits no volume", "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi, iops: 5}, limits: {storage: 2Gi}}}}", []string{
			"spec.pod.persistentVolumeClaimSpec.resources.limits", "spec.pod.persistentVolumeClaimSpec.resources.requests[iops]",
		}},
		{"pods that leave lost nodes", "pod: {tolerations: [{key: dedicated, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]}", []string{
			"spec.pod.tolerations[1]", "spec.pod.tolerations[2]",
		}},
		{"certificates from nowhere", "TLS: {}", []string{"spec.TLS"}},
		{"certificates", "TLS: {auto: {}}", nil},
		{"hibernated", "size: 0", []string{"spec.size"}},
		{"no size", "size: null", nil},
		{"3.1", "version: 3.1.10", []string{"spec.version"}},
		{"3.2", "version: v3.2.13", []string{"spec.version"}},
		{"3.3", "version: 3.3.27", []string{"spec.version"}},
		{"3.4", "version: 3.4.45", []string{"spec.version"}},
		{"3.5", "version: 3.5.0", nil},
		{"3.6", "version: 3.6.16", nil},
		{"3.7", "version: 3.7.0-rc.1", nil},
		{"newer than this release", "version: 3.8.0", nil},
		{"the default", "version: " + v1beta2.DefaultVersion, nil},
		{"not a version", "version: x", nil},
		{"without effect", "pod: {busyboxImage: x, DNSTimeoutInSecond: 1}", []string{"spec.pod.busyboxImage", "spec.pod.DNSTimeoutInSecond"}},
		{"deprecated", "pod: {antiAffinity: true}", []string{"spec.pod.antiAffinity"}},
		{"environment", "pod: {etcdEnv: [{name: ETCD_NAME}, {name: A}, {name: ETCD_DATA_DIR}, {name: ETCD_INITIAL_CLUSTER}, {name: ETCD_LISTEN_PEER_URLS}, {name: ETCD_ADVERTISE_CLIENT_URLS}, {name: ETCD_PEER_KEY_FILE}, {name: ETCD_QUOTA_BACKEND_BYTES}]}", []string{
			"spec.pod.etcdEnv[0].name", "spec.pod.etcdEnv[2].name", "spec.pod.etcdEnv[3].name", "spec.pod.etcdEnv[4].name", "spec.pod.etcdEnv[5].name", "spec.pod.etcdEnv[6].name", "spec.pod.etcdEnv[7].name",
		}},
		{"unsafe", "etcd: {extraArgs: [--enable-pprof, --unsafe-no-fsync]}", []string{"spec.etcd.extraArgs[1]"}},
		{"large quota", "etcd: {quotaBackendBytes: 9Gi}", []string{"spec.etcd.quotaBackendBytes"}},
		{"quota of the whole volume", "{etcd: {quotaBackendBytes: 2Gi}, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 2Gi}}}}}", []string{"spec.etcd.quotaBackendBytes"}},
		{"quota of part of the volume", "{etcd: {quotaBackendBytes: 1Gi}, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 2Gi}}}}}", nil},
		{"quota beyond writing out", "etcd: {quotaBackendBytes: 1e999999999}", nil},
		{"volume beyond writing out", "{etcd: {quotaBackendBytes: 1Gi}, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 1e999999999}}}}}", nil},
		{"quota without a size", "{etcd: {quotaBackendBytes: 1Gi}, pod: {persistentVolumeClaimSpec: {}}}", nil},
		{"backup on request", "backup: {timeZone: UTC, retention: {count: 1}, " + s3 + "}", []string{"spec.backup.timeZone", "spec.backup.retention"}},
		{"backup unencrypted", "backup: {storageType: S3, s3: {path: b/k, endpoint: 'http://s3:9000', insecureSkipTLSVerify: true}}", []string{"spec.backup.s3.insecureSkipTLSVerify", "spec.backup.s3.endpoint"}},
		{"backup to anyone", "backup: {storageType: S3, s3: {path: b/k, insecureSkipTLSVerify: true}}", []string{"spec.backup.s3.insecureSkipTLSVerify"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			single := cluster(t, "size: 1")
			parse(t, c.spec, &single.Spec)
			warned(t, WarningsForEtcdCluster(single), c.want...)
		})
	}
}

// TestWarningsSayWhatToDo looks at the words of those that are about the safety of data.
func TestWarningsSayWhatToDo(t *testing.T) {
	for spec, want := range map[string][]string{
		"size: 4":                    {"4 members tolerate no more failures than 3", "choose an odd number"},
		"size: 5":                    {"loses its data with its pod", "Set it when you create the cluster"},
		"{size: 1, version: 3.4.45}": {"etcd 3.4.45 has reached its end of life", "use 3.5, 3.6 or 3.7, one minor version at a time"},
		"pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteMany]}}": {"file shares", "use ReadWriteOnce on block storage"},
	} {
		got := strings.Join(WarningsForEtcdCluster(cluster(t, spec)), "\n")
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q is not said in %q", spec, text, got)
			}
		}
	}
}

func TestBackupWarnings(t *testing.T) {
	for _, c := range []specCase{
		{"none", "{etcdCluster: {name: example}, " + toS3 + "}", nil},
		{"periodic", "{backupPolicy: {backupIntervalInSecond: 5, maxBackups: 3, maxAge: 1h, suspend: true}, " + toS3 + "}", nil},
		{"scheduled", "{backupPolicy: {schedule: '@daily', timeZone: UTC, maxBackups: 3}, " + toS3 + "}", nil},
		{"once", "{backupPolicy: {maxBackups: 3, maxAge: 1h, suspend: true, timeZone: UTC}, " + toS3 + "}", []string{
			"spec.backupPolicy.maxBackups", "spec.backupPolicy.maxAge", "spec.backupPolicy.suspend", "spec.backupPolicy.timeZone",
		}},
		{"a TTL", "{etcdCluster: {name: example}, ttl: 1h, hold: false, " + toS3 + "}", nil},
		{"a TTL of a held one", "{etcdCluster: {name: example}, ttl: 1h, hold: true, " + toS3 + "}", []string{"spec.ttl"}},
		{"snapshots of a new one", "{heldSnapshots: ['s3://b/k/1'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", nil},
		{"to anyone", "{storageType: S3, s3: {path: b/k, insecureSkipTLSVerify: true}}", []string{"spec.s3.insecureSkipTLSVerify"}},
		{"S3 unencrypted", "{storageType: S3, s3: {path: b/k, endpoint: 'http://s3:9000'}}", []string{"spec.s3.endpoint"}},
		{"ABS unencrypted", "{storageType: ABS, abs: {path: b/k, absSecret: a, endpoint: 'HTTP://azurite:10000'}}", []string{"spec.abs.endpoint"}},
		{"GCS unencrypted", "{storageType: GCS, gcs: {path: b/k, gcpSecret: a, endpoint: 'http://gcs:4443'}}", []string{"spec.gcs.endpoint"}},
		{"OSS unencrypted", "{storageType: OSS, oss: {path: b/k, ossSecret: a, endpoint: 'http://oss-cn-hangzhou.aliyuncs.com'}}", []string{"spec.oss.endpoint"}},
		{"proof", "{etcdCluster: {name: example}, verify: Restore, " + toS3 + "}", nil},
		{"proof of an encrypted one", "{etcdCluster: {name: example}, verify: Restore, encryption: {ageRecipientsSecret: r}, " + toS3 + "}", []string{"spec.verify"}},
		{"proof without a cluster", "{etcdEndpoints: ['http://e:2379'], verify: Restore, " + toS3 + "}", []string{"spec.verify"}},
		{"OSS without a scheme", "{storageType: OSS, oss: {path: b/k, ossSecret: a, endpoint: oss-cn-hangzhou.aliyuncs.com}}", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			warned(t, WarningsForEtcdBackup(backup(t, c.spec)), c.want...)
		})
	}
}

// TestHeldSnapshotsThatNothingLists: a typing mistake in a URI would hold nothing, without a word.
func TestHeldSnapshotsThatNothingLists(t *testing.T) {
	b := backup(t, "{heldSnapshots: ['s3://b/k/1', 's3://b/k/2', 's3://b/k/3', 's3://b/k/4'], backupPolicy: {schedule: '@daily'}, "+toS3+"}")
	b.Status.URI = "s3://b/k/1"
	b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, URI: "s3://b/k/2"}, {URI: "s3://b/k/3"}}
	warned(t, WarningsForEtcdBackup(b), "spec.heldSnapshots[2]", "spec.heldSnapshots[3]")
	without := b.DeepCopy()
	without.Spec.HeldSnapshots = nil
	warned(t, ReleasedFromEtcdBackup(without, b), "spec.heldSnapshots")
	warned(t, ReleasedFromEtcdBackup(b, b))
	warned(t, ReleasedFromEtcdBackup(without, without))
}

func TestRestoreWarnings(t *testing.T) {
	warned(t, WarningsForEtcdRestore(restore(t, "{etcdCluster: {name: example}, "+fromS3+"}")))
	warned(t, WarningsForEtcdRestore(restore(t, "{backupStorageType: S3, s3: {path: b/k, insecureSkipTLSVerify: true}, clusterTemplate: {spec: {size: 2, version: 3.6.8}}}")),
		"spec.s3.insecureSkipTLSVerify", "spec.clusterTemplate.spec.size")
}
