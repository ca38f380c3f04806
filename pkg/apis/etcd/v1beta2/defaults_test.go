// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Defaults are tested as the scheme applies them: a default that was written and not
// generated for would be missing there. A field that want does not name stays unset.
func TestDefaults(t *testing.T) {
	for _, c := range []struct{ name, kind, given, want string }{
		{"cluster", "EtcdCluster", "{}", "{repository: quay.io/coreos/etcd, podDisruptionBudget: Enabled}"},
		{
			"cluster, all set", "EtcdCluster", "{size: 1, repository: a, version: 3.6.8, podDisruptionBudget: Disabled, recovery: {quorumLoss: Automatic, memberLoss: Manual, memberLossTimeoutSeconds: 600}, pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}}",
			"{size: 1, repository: a, version: 3.6.8, podDisruptionBudget: Disabled, recovery: {quorumLoss: Automatic, memberLoss: Manual, memberLossTimeoutSeconds: 600}, pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}}",
		},
		{
			"volumes", "EtcdCluster", "{repository: a, version: b, podDisruptionBudget: c, pod: {persistentVolumeClaimRetentionPolicy: {}}}",
			"{repository: a, version: b, podDisruptionBudget: c, pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}}",
		},
		{"empty policies stay empty", "EtcdCluster", "{repository: a, version: b, podDisruptionBudget: c, pod: {}, TLS: {}, etcd: {}, services: {}}", "{repository: a, version: b, podDisruptionBudget: c, pod: {}, TLS: {}, etcd: {}, services: {}}"},
		{"recovery", "EtcdCluster", "{repository: a, version: b, podDisruptionBudget: c, recovery: {}}", "{repository: a, version: b, podDisruptionBudget: c, recovery: {quorumLoss: Manual, memberLoss: Automatic}}"},
		{
			"issuer", "EtcdCluster", "{repository: a, version: b, podDisruptionBudget: c, TLS: {certManager: {issuerRef: {name: d}}}}",
			"{repository: a, version: b, podDisruptionBudget: c, TLS: {certManager: {issuerRef: {name: d, kind: Issuer, group: cert-manager.io}}}}",
		},
		{
			"backups of a cluster", "EtcdCluster", "{repository: a, version: b, podDisruptionBudget: c, backup: {storageType: OSS, oss: {path: d, ossSecret: e}}}",
			"{repository: a, version: b, podDisruptionBudget: c, backup: {storageType: OSS, oss: {path: d, ossSecret: e, endpoint: 'https://oss-cn-hangzhou.aliyuncs.com'}, compression: Zstd, verify: Checksum}}",
		},
		{"backup", "EtcdBackup", "{storageType: S3}", "{storageType: S3, compression: None, verify: Hash}"},
		{"backup, all set", "EtcdBackup", "{storageType: S3, compression: Zstd, verify: Restore}", "{storageType: S3, compression: Zstd, verify: Restore}"},
		{
			"backup to OSS", "EtcdBackup", "{storageType: OSS, oss: {path: a, ossSecret: b}}",
			"{storageType: OSS, oss: {path: a, ossSecret: b, endpoint: 'https://oss-cn-hangzhou.aliyuncs.com'}, compression: None, verify: Hash}",
		},
		{
			"backup of endpoints to a cloud", "EtcdBackup", "{etcdEndpoints: [a], storageType: S3, s3: {path: b}}",
			"{etcdEndpoints: [a], storageType: S3, s3: {path: b}, compression: None, verify: Hash}",
		},
		{
			"backup of a cluster to AWS", "EtcdBackup", "{etcdCluster: {name: a}, storageType: S3, s3: {path: b}}",
			"{etcdCluster: {name: a}, storageType: S3, s3: {path: b}, compression: Zstd, verify: Checksum}",
		},
		{
			"backup of a cluster to AWS, by name", "EtcdBackup", "{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'https://s3.eu-central-1.amazonaws.com'}}",
			"{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'https://s3.eu-central-1.amazonaws.com'}, compression: Zstd, verify: Checksum}",
		},
		{
			"backup of a cluster to AWS without TLS", "EtcdBackup", "{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'http://s3.eu-central-1.amazonaws.com'}}",
			"{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'http://s3.eu-central-1.amazonaws.com'}, compression: Zstd, verify: Hash}",
		},
		{
			"backup of a cluster to a store of its own", "EtcdBackup", "{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'https://amazonaws.com.example.com'}}",
			"{etcdCluster: {name: a}, storageType: S3, s3: {path: b, endpoint: 'https://amazonaws.com.example.com'}, compression: Zstd, verify: Hash}",
		},
		{
			"backup of a cluster to Google", "EtcdBackup", "{etcdCluster: {name: a}, storageType: GCS, gcs: {path: b}}",
			"{etcdCluster: {name: a}, storageType: GCS, gcs: {path: b}, compression: Zstd, verify: Checksum}",
		},
		{
			"backup of a cluster to a stand-in for Google", "EtcdBackup", "{etcdCluster: {name: a}, storageType: GCS, gcs: {path: b, endpoint: 'https://gcs.example.com'}}",
			"{etcdCluster: {name: a}, storageType: GCS, gcs: {path: b, endpoint: 'https://gcs.example.com'}, compression: Zstd, verify: Hash}",
		},
		{
			"backup of a cluster to Azure", "EtcdBackup", "{etcdCluster: {name: a}, storageType: ABS, abs: {path: b, endpoint: 'https://a.blob.core.windows.net'}}",
			"{etcdCluster: {name: a}, storageType: ABS, abs: {path: b, endpoint: 'https://a.blob.core.windows.net'}, compression: Zstd, verify: Checksum}",
		},
		{
			"backup of a cluster to Alibaba", "EtcdBackup", "{etcdCluster: {name: a}, storageType: OSS, oss: {path: b, ossSecret: c, endpoint: oss-cn-hangzhou.aliyuncs.com}}",
			"{etcdCluster: {name: a}, storageType: OSS, oss: {path: b, ossSecret: c, endpoint: oss-cn-hangzhou.aliyuncs.com}, compression: Zstd, verify: Checksum}",
		},
		{
			"backup of a cluster to a volume", "EtcdBackup", "{etcdCluster: {name: a}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: b}}",
			"{etcdCluster: {name: a}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: b}, compression: Zstd, verify: Hash}",
		},
		{"restore", "EtcdRestore", "{}", "{}"},
		{"restore from OSS", "EtcdRestore", "{oss: {path: a, ossSecret: b}}", "{oss: {path: a, ossSecret: b, endpoint: 'https://oss-cn-hangzhou.aliyuncs.com'}}"},
		{
			"restore to a new cluster", "EtcdRestore", "{clusterTemplate: {spec: {size: 3, recovery: {}, backup: {storageType: S3}, TLS: {certManager: {issuerRef: {name: d}}}, pod: {persistentVolumeClaimRetentionPolicy: {}}}}}",
			"{clusterTemplate: {spec: {size: 3, repository: quay.io/coreos/etcd, podDisruptionBudget: Enabled, recovery: {quorumLoss: Manual, memberLoss: Automatic}, backup: {storageType: S3, compression: Zstd, verify: Hash}, TLS: {certManager: {issuerRef: {name: d, kind: Issuer, group: cert-manager.io}}}, pod: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}}}}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			scheme := newScheme(t)
			got, want := withSpec(t, scheme, c.kind, c.given), withSpec(t, scheme, c.kind, c.want)
			scheme.Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			scheme.Default(got)
			if !equality.Semantic.DeepEqual(want, got) {
				t.Error("defaults are not stable")
			}
		})
	}
}

func withSpec(t *testing.T, scheme *runtime.Scheme, kind, spec string) runtime.Object {
	t.Helper()
	object, err := scheme.New(v1beta2.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte("{spec: "+spec+"}"), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestDefaultsOfLists(t *testing.T) {
	scheme := newScheme(t)
	clusters := &v1beta2.EtcdClusterList{Items: make([]v1beta2.EtcdCluster, 2)}
	backups := &v1beta2.EtcdBackupList{Items: make([]v1beta2.EtcdBackup, 2)}
	restores := &v1beta2.EtcdRestoreList{Items: []v1beta2.EtcdRestore{{}, {Spec: v1beta2.RestoreSpec{RestoreSource: v1beta2.RestoreSource{OSS: &v1beta2.OSSSource{}}}}}}
	for _, list := range []runtime.Object{clusters, backups, restores} {
		scheme.Default(list)
	}
	if clusters.Items[1].Spec.Repository != v1beta2.DefaultRepository || backups.Items[1].Spec.Verify != v1beta2.VerificationHash || restores.Items[1].Spec.OSS.Endpoint == "" {
		t.Error("items of a list have no defaults")
	}
}
