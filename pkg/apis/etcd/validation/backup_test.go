// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
)

const toS3 = "storageType: S3, s3: {path: b/k}"

func TestBackupMetadata(t *testing.T) {
	b := backup(t, "{etcdCluster: {name: example}, "+toS3+"}")
	b.Name, b.Namespace = "A/b", ""
	expect(t, ValidateEtcdBackup(b), "Invalid metadata.name", "Required metadata.namespace")
}

func TestBackupSpec(t *testing.T) {
	for _, c := range []specCase{
		{"cluster", "{etcdCluster: {name: example}, " + toS3 + "}", nil},
		{"endpoints", "{etcdEndpoints: ['http://a-client:2379', 'https://10.0.0.1:2379', 'https://[fd00::1]:2379'], clientTLSSecret: tls, " + toS3 + "}", nil},
		{"neither", "{" + toS3 + "}", []string{"Required spec.etcdCluster"}},
		{"both", "{etcdCluster: {name: example}, etcdEndpoints: ['http://a:2379'], " + toS3 + "}", []string{"Forbidden spec.etcdEndpoints"}},
		{"cluster without a name", "{etcdCluster: {}, " + toS3 + "}", []string{"Required spec.etcdCluster.name"}},
		{"wrong cluster", "{etcdCluster: {name: other/example}, " + toS3 + "}", []string{"Invalid spec.etcdCluster.name"}},
		{"certificate twice", "{etcdCluster: {name: example}, clientTLSSecret: tls, " + toS3 + "}", []string{"Forbidden spec.clientTLSSecret"}},
		{"wrong certificate", "{etcdEndpoints: ['https://a:2379'], clientTLSSecret: ../tls, " + toS3 + "}", []string{"Invalid spec.clientTLSSecret"}},
		{"wrong endpoints", "{etcdEndpoints: ['http://a:2379', 'a:2379', a, '', 'http://a', 'http://a:2379/v3', 'http://a:2379?x', 'http://:2379', 'ftp://a:2379', 'http://169.254.169.254:80', 'http://a:2379,http://b:2379'], " + toS3 + "}", []string{
			"Invalid spec.etcdEndpoints[1]", "Invalid spec.etcdEndpoints[2]", "Invalid spec.etcdEndpoints[3]", "Invalid spec.etcdEndpoints[4]", "Invalid spec.etcdEndpoints[5]",
			"Invalid spec.etcdEndpoints[6]", "Invalid spec.etcdEndpoints[7]", "Invalid spec.etcdEndpoints[8]", "Invalid spec.etcdEndpoints[9]", "Invalid spec.etcdEndpoints[10]",
		}},
		{"credentials", "{etcdEndpoints: ['http://root:x@a:2379'], " + toS3 + "}", []string{"Forbidden spec.etcdEndpoints[0]"}},
		{"no type", "{etcdCluster: {name: example}}", []string{"Required spec.storageType"}},
		{"treatment", "{etcdCluster: {name: example}, compression: Zstd, verify: Restore, encryption: {ageRecipientsSecret: age}, " + toS3 + "}", nil},
		{"unknown treatment", "{etcdCluster: {name: example}, compression: gzip, verify: Maybe, encryption: {}, " + toS3 + "}", []string{
			"NotSupported spec.compression", "NotSupported spec.verify", "Required spec.encryption.ageRecipientsSecret",
		}},
		{"interval", "{etcdCluster: {name: example}, backupPolicy: {backupIntervalInSecond: 125, maxBackups: 4, timeoutInSecond: 60, maxAge: 24h, suspend: true}, " + toS3 + "}", nil},
		{"schedule", "{etcdCluster: {name: example}, backupPolicy: {schedule: '@daily', timeZone: UTC}, " + toS3 + "}", nil},
		{"both periods", "{etcdCluster: {name: example}, backupPolicy: {schedule: '@daily', backupIntervalInSecond: 1}, " + toS3 + "}", []string{"Forbidden spec.backupPolicy.schedule"}},
		{"negative policy", "{etcdCluster: {name: example}, backupPolicy: {backupIntervalInSecond: -1, maxBackups: -1, timeoutInSecond: -1, maxAge: -1s}, " + toS3 + "}", []string{
			"Invalid spec.backupPolicy.backupIntervalInSecond", "Invalid spec.backupPolicy.maxBackups", "Invalid spec.backupPolicy.timeoutInSecond", "Invalid spec.backupPolicy.maxAge",
		}},
		{"longer than can be counted", "{etcdCluster: {name: example}, backupPolicy: {backupIntervalInSecond: 9223372036854775807, timeoutInSecond: 9223372037}, " + toS3 + "}", []string{
			"Invalid spec.backupPolicy.backupIntervalInSecond", "Invalid spec.backupPolicy.timeoutInSecond",
		}},
		{"a hold and a TTL", "{etcdCluster: {name: example}, hold: true, ttl: 1m, " + toS3 + "}", nil},
		{"a TTL that no client survives", "{etcdCluster: {name: example}, ttl: 59s, " + toS3 + "}", []string{"Invalid spec.ttl"}},
		{"a TTL of a periodic one", "{etcdCluster: {name: example}, ttl: 1h, backupPolicy: {schedule: '@daily'}, " + toS3 + "}", []string{"Forbidden spec.ttl"}},
		{"held snapshots", "{etcdCluster: {name: example}, heldSnapshots: ['s3://b/k/1', 's3://b/k/2'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", nil},
		{"held snapshots of a single one", "{etcdCluster: {name: example}, heldSnapshots: ['s3://b/k/1'], " + toS3 + "}", []string{"Forbidden spec.heldSnapshots"}},
		{"no URIs", "{etcdCluster: {name: example}, heldSnapshots: ['', nightly, 's3://', '://x', 's3://b/1', 's3://b/1'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", []string{
			"Invalid spec.heldSnapshots[0]", "Invalid spec.heldSnapshots[1]", "Invalid spec.heldSnapshots[2]", "Invalid spec.heldSnapshots[3]", "Duplicate spec.heldSnapshots[5]",
		}},
		{"a long URI", "{etcdCluster: {name: example}, heldSnapshots: ['s3://" + strings.Repeat("a", maxSnapshotLength) + "'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", []string{"TooLong spec.heldSnapshots[0]"}},
		{"more snapshots than a Job gets", "{etcdCluster: {name: example}, heldSnapshots: [" + strings.Repeat("'s3://b/k', ", maxHeldSnapshots) + "'s3://b/l'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", []string{"TooMany spec.heldSnapshots"}},
		{"a service account", "{etcdCluster: {name: example}, serviceAccountName: backups, " + toS3 + "}", nil},
		{"no service account", "{etcdCluster: {name: example}, serviceAccountName: ../default, " + toS3 + "}", []string{"Invalid spec.serviceAccountName"}},
		{"no age", "{etcdCluster: {name: example}, backupPolicy: {maxAge: 0s}, " + toS3 + "}", []string{"Invalid spec.backupPolicy.maxAge"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdBackup(backup(t, c.spec)), c.want...)
		})
	}
}

func TestBackupUpdate(t *testing.T) {
	const once = "{etcdCluster: {name: example}, " + toS3 + "}"
	const daily = "{etcdCluster: {name: example}, backupPolicy: {schedule: '@daily'}, " + toS3 + "}"
	const endpoints = "etcdEndpoints: ['http://a:2379']"
	byService := func(service string) string {
		return "{etcdEndpoints: ['http://" + service + ":2379'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}"
	}
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"nothing", once, once, nil},
		{"credentials of a single one", once, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k, awsSecret: right, caSecret: ca, forcePathStyle: true}}", nil},
		{"hold and TTL of a single one", once, "{etcdCluster: {name: example}, hold: true, ttl: 24h, " + toS3 + "}", nil},
		{"snapshots of a periodic one", daily, "{etcdCluster: {name: example}, heldSnapshots: ['s3://b/k/1'], backupPolicy: {schedule: '@daily'}, " + toS3 + "}", nil},
		{"policy of a single one", once, "{etcdCluster: {name: example}, backupPolicy: {timeoutInSecond: 60}, " + toS3 + "}", nil},
		{"treatment of a single one", once, "{etcdCluster: {name: example}, compression: Zstd, verify: Restore, " + toS3 + "}", nil},
		{"cluster of a single one", once, "{etcdCluster: {name: other}, " + toS3 + "}", []string{"Forbidden spec.etcdCluster"}},
		{"cluster to endpoints", once, "{" + endpoints + ", " + toS3 + "}", []string{"Forbidden spec.etcdCluster", "Forbidden spec.etcdEndpoints"}},
		{"endpoints of a single one", "{" + endpoints + ", " + toS3 + "}", "{etcdEndpoints: ['http://b:2379'], " + toS3 + "}", []string{"Forbidden spec.etcdEndpoints"}},
		{"key of a single one", once, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/l}}", []string{"Forbidden spec.s3"}},
		{"endpoint of a single one", once, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k, endpoint: a.example.com}}", []string{"Forbidden spec.s3"}},
		{"region of a single one", once, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k, region: r}}", []string{"Forbidden spec.s3"}},
		{"store of a single one", once, "{etcdCluster: {name: example}, storageType: GCS, gcs: {path: b/k}}", []string{"Forbidden spec.storageType"}},
		{"single to periodic", once, daily, []string{"Forbidden spec.backupPolicy"}},
		{"single to periodic, by interval", once, "{etcdCluster: {name: example}, backupPolicy: {backupIntervalInSecond: 5}, " + toS3 + "}", []string{"Forbidden spec.backupPolicy"}},
		{"periodic to single", daily, once, []string{"Forbidden spec.backupPolicy"}},
		{"schedule to interval", daily, "{etcdCluster: {name: example}, backupPolicy: {backupIntervalInSecond: 5, suspend: true, maxBackups: 3, maxAge: 1h}, " + toS3 + "}", nil},
		{"cluster of a periodic one", daily, "{etcdCluster: {name: other}, backupPolicy: {schedule: '@daily'}, " + toS3 + "}", []string{"Forbidden spec.etcdCluster"}},
		{"periodic endpoints to cluster", "{" + endpoints + ", backupPolicy: {schedule: '@daily'}, " + toS3 + "}", daily, nil},
		{"periodic cluster to endpoints", daily, "{" + endpoints + ", backupPolicy: {schedule: '@daily'}, " + toS3 + "}", nil},
		{"periodic cluster to the service of another", daily, byService("other-client"), []string{"Forbidden spec.etcdCluster"}},
		{"periodic service to another cluster", byService("other-client"), daily, []string{"Forbidden spec.etcdCluster"}},
		{"periodic service to that of another", byService("example-client"), byService("other-client"), []string{"Forbidden spec.etcdEndpoints"}},
		{"periodic cluster to its service", daily, byService("example-client"), nil},
		{"periodic service to its cluster", byService("example-client"), daily, nil},
		{"another name of a periodic service", byService("example-client"), byService("example-client.ns.svc"), nil},
		{"place of a periodic one", daily, "{etcdCluster: {name: example}, backupPolicy: {schedule: '@daily'}, storageType: GCS, gcs: {path: b/k}}", nil},
		{"now wrong", daily, "{etcdCluster: {name: example}, backupPolicy: {schedule: daily}, " + toS3 + "}", []string{"Invalid spec.backupPolicy.schedule"}},
		{"still wrong", "{storageType: FTP}", "{storageType: FTP}", nil},
		{"wrong in another way", "{storageType: FTP}", "{storageType: SFTP}", []string{"NotSupported spec.storageType", "Forbidden spec.storageType"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdBackupUpdate(backup(t, c.to), backup(t, c.from)), c.want...)
		})
	}
	for _, c := range []struct{ from, to, field string }{
		{"storageType: ABS, abs: {path: c/k, absSecret: a}", "storageType: ABS, abs: {path: c/l, absSecret: a}", "abs"},
		{"storageType: ABS, abs: {path: c/k, absSecret: a}", "storageType: ABS, abs: {path: c/k, absSecret: a, endpoint: e}", "abs"},
		{"storageType: GCS, gcs: {path: c/k}", "storageType: GCS, gcs: {path: c/l}", "gcs"},
		{"storageType: GCS, gcs: {path: c/k, gcpSecret: a}", "storageType: GCS, gcs: {path: c/k, gcpSecret: a, endpoint: e}", "gcs"},
		{"storageType: OSS, oss: {path: c/k, ossSecret: a}", "storageType: OSS, oss: {path: c/l, ossSecret: a}", "oss"},
		{"storageType: OSS, oss: {path: c/k, ossSecret: a}", "storageType: OSS, oss: {path: c/k, ossSecret: a, endpoint: e}", "oss"},
		{"storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a}", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: b}", "persistentVolumeClaim"},
		{"storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a}", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a, path: b}", "persistentVolumeClaim"},
	} {
		from, to := backup(t, "{etcdCluster: {name: example}, "+c.from+"}"), backup(t, "{etcdCluster: {name: example}, "+c.to+"}")
		expect(t, ValidateEtcdBackupUpdate(to, from), "Forbidden spec."+c.field)
		expect(t, ValidateEtcdBackupUpdate(to, to.DeepCopy()))
	}
}

func TestBackupUpdateOfMetadata(t *testing.T) {
	from := backup(t, "{etcdCluster: {name: example}, "+toS3+"}")
	to := from.DeepCopy()
	to.UID = "changed"
	expect(t, ValidateEtcdBackupUpdate(to, from), "Invalid metadata.uid")
}
