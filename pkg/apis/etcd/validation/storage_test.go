// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"
)

// The sources are checked in three places: an EtcdBackup, an EtcdRestore and the backup
// policy of a cluster. %s is where the path of a wrong field begins.
var placeCases = []specCase{
	{"S3", "storageType: S3, s3: {path: b/k}", nil},
	{"S3, everything", "storageType: S3, s3: {path: b/k/l, awsSecret: aws, endpoint: 'https://s3.example.com:9000', forcePathStyle: true, region: eu-central-1, caSecret: ca, insecureSkipTLSVerify: true, serverSideEncryption: 'aws:kms'}", nil},
	{"ABS", "storageType: ABS, abs: {path: c/k, absSecret: abs, endpoint: 'http://azurite:10000'}", nil},
	{"GCS", "storageType: GCS, gcs: {path: b/k, gcpSecret: gcp, endpoint: 'http://gcs:4443/'}", nil},
	{"GCS as the workload", "storageType: GCS, gcs: {path: b/k}", nil},
	{"OSS", "storageType: OSS, oss: {path: b/k, ossSecret: oss, endpoint: oss-cn-hangzhou.aliyuncs.com}", nil},
	{"volume", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: backups, path: a/b}", nil},
	{"volume, root", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: backups}", nil},
	{"unknown type", "storageType: FTP", []string{"NotSupported %sT"}},
	{"unknown type with a source", "storageType: FTP, s3: {path: b/k}", []string{"NotSupported %sT"}},
	{"type only", "storageType: S3", []string{"Required %ss3"}},
	{"other source", "storageType: S3, gcs: {path: b/k}", []string{"Required %ss3", "Forbidden %sgcs"}},
	{"ABS without a secret", "storageType: ABS, abs: {path: c/k, endpoint: 'https://account.blob.core.windows.net'}", nil},
	{"authorities", "storageType: GCS, gcs: {path: b/k, gcpSecret: gcp, endpoint: 'https://gcs:4443', caSecret: ca}", nil},
	{"CA of ABS", "storageType: ABS, abs: {path: c/k, absSecret: abs, endpoint: 'https://azurite:10000', caSecret: ca}", nil},
	{"CA of OSS", "storageType: OSS, oss: {path: b/k, ossSecret: oss, endpoint: 'https://oss.example.com', caSecret: ca}", nil},
	{"GCS as the workload, elsewhere at Google", "storageType: GCS, gcs: {path: b/k, endpoint: storage.me-central2.rep.googleapis.com}", nil},
	{"GCS as the workload, elsewhere", "storageType: GCS, gcs: {path: b/k, endpoint: 'https://googleapis.com.example.com'}", []string{"Invalid %sgcs.endpoint"}},
	{"GCS as the workload, unencrypted", "storageType: GCS, gcs: {path: b/k, endpoint: 'http://storage.googleapis.com'}", []string{"Invalid %sgcs.endpoint"}},
	{"ABS as the workload, elsewhere", "storageType: ABS, abs: {path: c/k, endpoint: 'https://account.example.com'}", []string{"Invalid %sabs.endpoint"}},
	{"ABS as the workload, no account", "storageType: ABS, abs: {path: c/k, endpoint: 'https://xblob.core.windows.net'}", []string{"Invalid %sabs.endpoint"}},
	{"ABS as the workload, another cloud", "storageType: ABS, abs: {path: c/k, endpoint: Account.BLOB.core.chinacloudapi.cn}", nil},
	{"ABS as the workload, another port", "storageType: ABS, abs: {path: c/k, endpoint: 'https://account.blob.core.windows.net:8443'}", []string{"Invalid %sabs.endpoint"}},
	{"ABS without an account", "storageType: ABS, abs: {path: c/k}", []string{"Required %sabs.absSecret"}},
	{"all sources", "storageType: PersistentVolumeClaim, s3: {path: b/k}, abs: {path: b/k, absSecret: a}, gcs: {path: b/k}, oss: {path: b/k, ossSecret: a}, persistentVolumeClaim: {claimName: a}", []string{
		"Forbidden %ss3", "Forbidden %sabs", "Forbidden %sgcs", "Forbidden %soss",
	}},
	{"all sources but one", "storageType: S3, s3: {path: b/k}, persistentVolumeClaim: {claimName: a}", []string{"Forbidden %spersistentVolumeClaim"}},
	{"empty ABS", "storageType: ABS, abs: {}", []string{"Required %sabs.path", "Required %sabs.absSecret"}},
	{"empty GCS", "storageType: GCS, gcs: {}", []string{"Required %sgcs.path"}},
	{"empty OSS", "storageType: OSS, oss: {}", []string{"Required %soss.path", "Required %soss.ossSecret"}},
	{"empty S3", "storageType: S3, s3: {}", []string{"Required %ss3.path"}},
	{"empty volume", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {}", []string{"Required %spersistentVolumeClaim.claimName"}},
	{"wrong S3", "storageType: S3, s3: {path: k, awsSecret: other/aws, endpoint: 'ftp://x', region: 'a b', caSecret: CA, serverSideEncryption: 'a b'}", []string{
		"Invalid %ss3.path", "Invalid %ss3.awsSecret", "Invalid %ss3.endpoint", "Invalid %ss3.region", "Invalid %ss3.caSecret", "Invalid %ss3.serverSideEncryption",
	}},
	{"wrong ABS", "storageType: ABS, abs: {path: k, absSecret: A, caSecret: C/A, endpoint: 'ftp://x'}", []string{"Invalid %sabs.path", "Invalid %sabs.absSecret", "Invalid %sabs.caSecret", "Invalid %sabs.endpoint"}},
	{"wrong GCS", "storageType: GCS, gcs: {path: k, gcpSecret: G, caSecret: C/A, endpoint: 'ftp://x'}", []string{"Invalid %sgcs.path", "Invalid %sgcs.gcpSecret", "Invalid %sgcs.caSecret", "Invalid %sgcs.endpoint"}},
	{"wrong OSS", "storageType: OSS, oss: {path: k, ossSecret: O, caSecret: C/A, endpoint: 'ftp://x'}", []string{"Invalid %soss.path", "Invalid %soss.ossSecret", "Invalid %soss.caSecret", "Invalid %soss.endpoint"}},
	{"wrong volume", "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: ../a, path: /etc}", []string{"Invalid %spersistentVolumeClaim.claimName", "Invalid %spersistentVolumeClaim.path"}},
}

// placed fills in where the case is used, and how the storage type is called there.
func placed(want []string, at, storageType string) []string {
	var filled []string
	for _, w := range want {
		w = strings.ReplaceAll(w, "%sT", at+storageType)
		filled = append(filled, strings.ReplaceAll(w, "%s", at))
	}
	return filled
}

func TestSources(t *testing.T) {
	for _, c := range placeCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdBackup(backup(t, "{etcdCluster: {name: example}, "+c.spec+"}")), placed(c.want, "spec.", "storageType")...)
			expect(t, ValidateEtcdCluster(cluster(t, "backup: {"+c.spec+"}")), placed(c.want, "spec.backup.", "storageType")...)
			renamed := strings.Replace(c.spec, "storageType", "backupStorageType", 1)
			expect(t, ValidateEtcdRestore(restore(t, "{etcdCluster: {name: example}, "+renamed+"}")), placed(c.want, "spec.", "backupStorageType")...)
		})
	}
}

func TestBucketPath(t *testing.T) {
	for _, path := range []string{
		"b/k", "my-bucket/etcd.backup_v1_2019-11-15-02:52:04", "my.bucket_1/a/b/c", "$root/a b", "b/ключ", "B/k", "b/..k", "b/k..", "b/...", strings.Repeat("b", 222) + "/" + strings.Repeat("k", 1024),
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}}")
		b.Spec.S3.Path = path
		expect(t, ValidateEtcdBackup(b))
	}
	for _, path := range []string{
		"b", "b/", "/k", "/b/k", "b//k", "b/k/", "b/../k", "b/..", "b/./k", "../k", "./k", "..", "s3://b/k", "b k/k", "b\x00/k", "b/k\n", "b/k\x00", `b/..\..\k`, "--b/k", "$(id)/k", "b;c/k",
		strings.Repeat("b", 223) + "/k", "b/" + strings.Repeat("k", 1025),
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}}")
		b.Spec.S3.Path = path
		expect(t, ValidateEtcdBackup(b), "Invalid spec.s3.path")
	}
}

// A path that is wrong in a common way is acknowledged with what to do about it.
func TestPathErrorsNameTheWayOut(t *testing.T) {
	for path, message := range map[string]string{
		"s3://b/k": "without a scheme", "/b/k": "not with a slash", "b": "the form <bucket>/<key>", "b/": "the form <bucket>/<key>", "b k/k": "the name of a bucket", "b//k": "remove the doubled", "b/../k": `".."`, "b/k\n": "control characters",
		strings.Repeat("b", 223) + "/k": "at most 222", "b/" + strings.Repeat("k", 1025): "at most 1024",
	} {
		errs := validateBucketPath(path, nil)
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, message) {
			t.Errorf("%s: %v", echo(path), errs)
		}
	}
	for path, message := range map[string]string{"/a": "remove the leading slash", "a/../b": `".."`} {
		errs := validateVolumePath(path, nil)
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, message) {
			t.Errorf("%s: %v", path, errs)
		}
	}
}

func TestVolumePath(t *testing.T) {
	for _, path := range []string{"a", "a/b.db", "..a"} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a}}")
		b.Spec.PersistentVolumeClaim.Path = path
		expect(t, ValidateEtcdBackup(b))
		b.Spec.PersistentVolumeClaim.Path = strings.Repeat("a", maxKeyLength)
		expect(t, ValidateEtcdBackup(b))
	}
	for _, path := range []string{"/", "/a", "..", "../a", "a/../b", "a//b", "a/", ".", "a\x00b", `..\a`} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a}}")
		b.Spec.PersistentVolumeClaim.Path = path
		expect(t, ValidateEtcdBackup(b), "Invalid spec.persistentVolumeClaim.path")
	}
	b := backup(t, "{etcdCluster: {name: example}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: a}}")
	b.Spec.PersistentVolumeClaim.Path = strings.Repeat("a", 1025)
	expect(t, ValidateEtcdBackup(b), "TooLong spec.persistentVolumeClaim.path")
}

func TestStoreEndpoint(t *testing.T) {
	for _, endpoint := range []string{
		"http://oss-cn-hangzhou.aliyuncs.com", "oss-cn-hangzhou.aliyuncs.com", "minio:9000", "https://minio.default.svc.cluster.local:9000/", "10.0.0.7:9000", "http://[fd00::7]:9000", "http://my_store", "http://127.0.0.1:9000", "http://store:65535", "http://" + strings.Repeat("a", 253),
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}}")
		b.Spec.S3.Endpoint = endpoint
		expect(t, ValidateEtcdBackup(b))
	}
	for _, endpoint := range []string{
		"ftp://store", "file:///etc/passwd", "unix:///run/x.sock", "http://", "http://store/path", "http://store?x=y", "http://store?", "http://store#x", "http://store:", "http://store:0", "http://store:65536", "http://store:port",
		"http://169.254.169.254", "169.254.169.254", "http://[fe80::1]", "http://[::ffff:169.254.169.254]", "http://0.0.0.0", "http://[::]", "http://224.0.0.1", "http://a b", "http://store\n", "http://$(id)", "http://-store", "mailto:x",
		"http://" + strings.Repeat("a", 254), "http://%zz", "--endpoint", "http://a..b",
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}}")
		b.Spec.S3.Endpoint = endpoint
		errs := ValidateEtcdBackup(b)
		if len(errs) == 0 {
			t.Errorf("accepted: %q", endpoint)
		}
		expect(t, errs[:min(1, len(errs))], "Invalid spec.s3.endpoint")
	}
}

func TestEndpointCredentialsAreNotRepeated(t *testing.T) {
	for _, endpoint := range []string{"http://user:hunter2@store", "user:hunter2@store", "http://user:hunter2@store:%zz"} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}}")
		b.Spec.S3.Endpoint = endpoint
		errs := ValidateEtcdBackup(b)
		expect(t, errs, "Forbidden spec.s3.endpoint")
		if text := fmt.Sprint(errs.ToAggregate()); strings.Contains(text, "hunter2") {
			t.Errorf("error repeats the password: %s", text)
		}
	}
}

func TestClusterBackupPolicy(t *testing.T) {
	const s3 = "storageType: S3, s3: {path: b/k}, "
	runClusterCases(t, []specCase{
		{"everything", "backup: {" + s3 + "schedule: '0 */6 * * *', timeZone: Europe/Berlin, retention: {count: 1, age: 720h}, compression: Zstd, verify: Restore, encryption: {ageRecipientsSecret: age}}", nil},
		{"no type", "backup: {}", []string{"Required spec.backup.storageType"}},
		{"no type, but a source", "backup: {s3: {path: b/k}}", []string{"Required spec.backup.storageType"}},
		{"wrong schedule and zone", "backup: {" + s3 + "schedule: hourly, timeZone: Mars}", []string{"Invalid spec.backup.schedule", "Invalid spec.backup.timeZone"}},
		{"nothing kept", "backup: {" + s3 + "retention: {count: 0, age: 0s}}", []string{"Invalid spec.backup.retention.count", "Invalid spec.backup.retention.age"}},
		{"TTL", "backup: {" + s3 + "ttl: 168h}", nil},
		{"no TTL", "backup: {" + s3 + "ttl: 0s}", []string{"Invalid spec.backup.ttl"}},
		{"no limits", "backup: {" + s3 + "retention: {}}", nil},
		{"unknown treatment", "backup: {" + s3 + "compression: gzip, verify: Yes, encryption: {}}", []string{
			"NotSupported spec.backup.compression", "NotSupported spec.backup.verify", "Required spec.backup.encryption.ageRecipientsSecret",
		}},
		{"wrong recipients", "backup: {" + s3 + "encryption: {ageRecipientsSecret: A}}", []string{"Invalid spec.backup.encryption.ageRecipientsSecret"}},
	})
}

func TestSchedule(t *testing.T) {
	for _, schedule := range []string{"* * * * *", "0 */6 * * *", "30 2 * * MON-FRI", "@hourly", "@daily", "@every 90m", "0 0 29 2 *", "0 0 31 12 ?"} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}, backupPolicy: {}}")
		b.Spec.BackupPolicy.Schedule = schedule
		expect(t, ValidateEtcdBackup(b))
	}
	for _, schedule := range []string{
		"* * * *", "* * * * * *", "0 0 0 * * *", "60 * * * *", "0 0 30 2 *", "0 0 31 4 *", "TZ=UTC * * * * *", "CRON_TZ=UTC * * * * *", "TZ=0", " TZ=UTC * * * * *", "TZ=", "@reboot", "@every", "@every x", "*/0 * * * *", "hourly", " ", "\n", "$(id)", "* * * * *; id",
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}, backupPolicy: {}}")
		b.Spec.BackupPolicy.Schedule = schedule
		expect(t, ValidateEtcdBackup(b), "Invalid spec.backupPolicy.schedule")
	}
	b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}, backupPolicy: {}}")
	b.Spec.BackupPolicy.Schedule = strings.Repeat("0", maxScheduleLength-8) + " * * * *"
	expect(t, ValidateEtcdBackup(b))
	b.Spec.BackupPolicy.Schedule = "0" + b.Spec.BackupPolicy.Schedule
	expect(t, ValidateEtcdBackup(b), "TooLong spec.backupPolicy.schedule")
}

func TestTimeZone(t *testing.T) {
	for zone, valid := range map[string]bool{
		"UTC": true, "Etc/UTC": true, "Europe/Berlin": true, "America/Argentina/Buenos_Aires": true,
		"": false, "Local": false, "local": false, "Mars/Olympus": false, "../etc/passwd": false, "/etc/localtime": false, "UTC\n": false,
	} {
		b := backup(t, "{etcdCluster: {name: example}, storageType: S3, s3: {path: b/k}, backupPolicy: {}}")
		b.Spec.BackupPolicy.TimeZone = &zone
		if valid {
			expect(t, ValidateEtcdBackup(b))
		} else {
			expect(t, ValidateEtcdBackup(b), "Invalid spec.backupPolicy.timeZone")
		}
	}
}
