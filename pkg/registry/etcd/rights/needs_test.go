// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// fill sets everything in a value, each string to its path, and returns the paths.
func fill(path *field.Path, value reflect.Value) []string {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return fill(path, value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		return fill(path.Index(0), value.Index(0))
	case reflect.Map:
		entry := reflect.New(value.Type().Elem()).Elem()
		paths := fill(path.Key("k"), entry)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(reflect.ValueOf("k").Convert(value.Type().Key()), entry)
		return paths
	case reflect.Struct:
		var paths []string
		for i := range value.NumField() {
			if structField := value.Type().Field(i); structField.IsExported() {
				at := path
				if name, inline := jsonName(structField); !inline {
					at = path.Child(name)
				}
				paths = append(paths, fill(at, value.Field(i))...)
			}
		}
		return paths
	case reflect.String:
		value.SetString(path.String())
		return []string{path.String()}
	default:
		return nil
	}
}

// TestEveryReferenceIsKnown looks at every field of the API, so that a field that is added
// is known, or this test says that it is not.
func TestEveryReferenceIsKnown(t *testing.T) {
	t.Parallel()
	looksLike := regexp.MustCompile(`(?i)secret|serviceaccount`)
	// The controller creates the Secret of a client, and uses none that exists.
	namesNothing := regexp.MustCompile(`\.secretKeyRef\.key$|\.clients\[0\]\.secretName$`)
	for _, obj := range []runtime.Object{&v1beta2.EtcdCluster{}, &v1beta2.EtcdBackup{}, &v1beta2.EtcdRestore{}} {
		var want, got []string
		for _, path := range fill(field.NewPath("spec"), reflect.ValueOf(obj).Elem().FieldByName("Spec")) {
			if looksLike.MatchString(path) && !namesNothing.MatchString(path) {
				want = append(want, path)
			}
		}
		for _, need := range NeedsOf(obj, nil) {
			if right := need.AnyOf[0]; right.Name != "" {
				got = append(got, need.Field)
				if right.Name != need.Field {
					t.Errorf("%T: %s asks about %s", obj, need.Field, right.Name)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 5 {
			t.Errorf("%T: fields that name Secrets or ServiceAccounts, and those with a check of rights:\n%s", obj, diff)
		}
	}
}

func s3Backup(edits ...func(*v1beta2.EtcdBackup)) *v1beta2.EtcdBackup {
	b := &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{
		EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}, StorageType: v1beta2.BackupStorageTypeS3,
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws", Endpoint: "https://s3.example.com"}},
	}}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func tlsCluster(edits ...func(*v1beta2.ClusterSpec)) *v1beta2.EtcdCluster {
	c := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{
		Repository: "quay.io/coreos/etcd", Version: "3.6.16",
		TLS: &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{OperatorSecret: "operator", Member: &v1beta2.MemberSecret{PeerSecret: "peer"}}},
		Pod: &v1beta2.PodPolicy{
			EtcdEnv: []corev1.EnvVar{
				{Name: "A", Value: "1"},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}, Key: "k"}}},
			},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}, {Name: "other"}},
		},
		Backup: &v1beta2.ClusterBackupPolicy{
			StorageType: v1beta2.BackupStorageTypeS3, ServiceAccountName: "mover",
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws"}},
		},
	}}
	for _, edit := range edits {
		edit(&c.Spec)
	}
	return c
}

func names(needs []Need) string {
	var list []string
	for _, need := range needs {
		list = append(list, need.AnyOf[0].Resource+"/"+need.AnyOf[0].Name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	restore := func(edits ...func(*v1beta2.RestoreSpec)) *v1beta2.EtcdRestore {
		r := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "b"}}}
		for _, edit := range edits {
			edit(&r.Spec)
		}
		return r
	}
	template := func(spec *v1beta2.RestoreSpec) {
		spec.ClusterTemplate = &v1beta2.EtcdClusterTemplate{Spec: tlsCluster().Spec}
	}
	location := func(s *v1beta2.RestoreSpec) {
		s.Backup, s.BackupStorageType = nil, v1beta2.BackupStorageTypeS3
		s.RestoreSource = v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws"}}
	}
	mover := func(b *v1beta2.EtcdBackup) { b.Spec.ServiceAccountName = "mover" }
	proof := func(b *v1beta2.EtcdBackup) { b.Spec.Verify = v1beta2.VerificationRestore }
	proofs := func(s *v1beta2.ClusterSpec) { s.Backup.Verify = v1beta2.VerificationRestore }
	evil := func(s *v1beta2.ClusterSpec) { s.Repository = "evil.example.com/etcd" }
	const ofMembers = "secrets/env secrets/operator secrets/other secrets/peer secrets/pull"
	const all = "secrets/aws secrets/env secrets/operator secrets/other secrets/peer secrets/pull serviceaccounts/mover"
	for _, test := range []struct {
		name     string
		obj, old runtime.Object
		want     string
	}{
		{"new backup", s3Backup(), nil, "secrets/aws"},
		{"backup of endpoints", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.ClientTLSSecret = "client" }), nil, "secrets/aws secrets/client"},
		{"backup to a volume", &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "c"}}}}, nil, ""},
		{"unchanged backup", s3Backup(func(b *v1beta2.EtcdBackup) { b.Labels = map[string]string{"a": "b"} }), s3Backup(), ""},
		{"backup with another schedule", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "@daily"} }), s3Backup(), ""},
		{"held backup", s3Backup(func(b *v1beta2.EtcdBackup) {
			b.Spec.Hold, b.Spec.HeldSnapshots, b.Spec.TTL = ptr.To(true), []string{"s3://bucket/key/1"}, &v1beta2.Duration{Duration: time.Hour}
		}), s3Backup(), ""},
		{"backup with another endpoint", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.S3.Endpoint = "https://evil.example.com" }), s3Backup(), "secrets/aws"},
		{"backup that trusts any certificate", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.S3.InsecureSkipTLSVerify = true }), s3Backup(), "secrets/aws"},
		{"backup that names another Secret", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.S3.AWSSecret = "other" }), s3Backup(), "secrets/other"},
		{"backup that names none any more", s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.S3.AWSSecret = "" }), s3Backup(), ""},
		{"backup with another verification", s3Backup(mover, func(b *v1beta2.EtcdBackup) { b.Spec.Verify = v1beta2.VerificationChecksum }), s3Backup(mover), ""},
		{"backup that a restore verifies", s3Backup(mover, proof), s3Backup(mover), "serviceaccounts/mover"},
		{"backup that no restore verifies any more", s3Backup(mover), s3Backup(mover, proof), ""},
		{"backup without a ServiceAccount that a restore verifies", s3Backup(proof), s3Backup(), ""},
		{"restore of a backup by name", restore(), nil, ""},
		{"restore with identities", restore(func(s *v1beta2.RestoreSpec) {
			s.Decryption = &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"}
			s.ServiceAccountName = "reader"
		}), nil, "secrets/age serviceaccounts/reader"},
		{"restore of a location", restore(location), nil, "etcdbackups/ secrets/aws"},
		{"unchanged restore of a location", restore(location), restore(location), ""},
		{"restore that names no source yet", restore(func(s *v1beta2.RestoreSpec) { s.Backup = nil }), nil, ""},
		{"restore into a new cluster", restore(template), nil, "etcdclusters/ " + all},
		{"unchanged restore", restore(template), restore(template), ""},
		{"new cluster", tlsCluster(), nil, all},
		{"unchanged cluster", tlsCluster(), tlsCluster(), ""},
		{"cluster with another size, version and schedule", tlsCluster(func(s *v1beta2.ClusterSpec) {
			s.Replicas, s.Version, s.Backup.Schedule, s.Backup.Retention = ptr.To[int32](5), "3.6.17", "@daily", &v1beta2.BackupRetention{Count: ptr.To[int32](3)}
			s.Pod.Resources.Requests = corev1.ResourceList{}
		}), tlsCluster(), ""},
		{"cluster with other annotations of its pods", tlsCluster(func(s *v1beta2.ClusterSpec) { s.Pod.Annotations = map[string]string{"a": "b"} }), tlsCluster(), ofMembers},
		{"cluster with other labels of its pods", tlsCluster(func(s *v1beta2.ClusterSpec) { s.Pod.Labels = map[string]string{"a": "b"} }), tlsCluster(), ofMembers},
		{"cluster with other labels of all objects", tlsCluster(func(s *v1beta2.ClusterSpec) {
			s.Metadata = &v1beta2.ObjectsMetadata{Labels: map[string]string{"a": "b"}}
		}), tlsCluster(), ofMembers},
		{"cluster with empty labels and annotations", tlsCluster(func(s *v1beta2.ClusterSpec) {
			s.Pod.Labels, s.Pod.Annotations, s.Metadata = map[string]string{}, map[string]string{}, &v1beta2.ObjectsMetadata{}
		}), tlsCluster(), ""},
		{"cluster without Secrets, with a policy of its pods", &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Pod: &v1beta2.PodPolicy{Annotations: map[string]string{"a": "b"}}}}, &v1beta2.EtcdCluster{}, ""},
		{"cluster with reordered lists", tlsCluster(func(s *v1beta2.ClusterSpec) {
			slices.Reverse(s.Pod.EtcdEnv)
			slices.Reverse(s.Pod.ImagePullSecrets)
		}), tlsCluster(), ""},
		{"cluster with another repository", tlsCluster(evil), tlsCluster(), ofMembers},
		{"cluster whose backups a restore verifies", tlsCluster(proofs), tlsCluster(), "serviceaccounts/mover"},
		{"cluster whose backups no restore verifies any more", tlsCluster(), tlsCluster(proofs), ""},
		{"cluster with another repository whose backups a restore verifies", tlsCluster(proofs, evil), tlsCluster(proofs), ofMembers + " serviceaccounts/mover"},
		{"cluster with another version whose backups a restore verifies", tlsCluster(proofs, func(s *v1beta2.ClusterSpec) { s.Version = "3.6.17" }), tlsCluster(proofs), ""},
		{"cluster with a Secret in another variable", tlsCluster(func(s *v1beta2.ClusterSpec) { s.Pod.EtcdEnv[1].Name = "ETCD_NAME" }), tlsCluster(), "secrets/env"},
		{"cluster with another pull Secret", tlsCluster(func(s *v1beta2.ClusterSpec) { s.Pod.ImagePullSecrets[0].Name = "third" }), tlsCluster(), "secrets/third"},
		{"cluster whose peer Secret becomes that of the servers", tlsCluster(func(s *v1beta2.ClusterSpec) { s.TLS.Static.Member.ServerSecret = "peer" }), tlsCluster(), "secrets/peer"},
		{"cluster with another bucket", tlsCluster(func(s *v1beta2.ClusterSpec) { s.Backup.S3.Path = "other/key" }), tlsCluster(), "secrets/aws serviceaccounts/mover"},
		{"another kind", &metav1.PartialObjectMetadata{}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := names(NeedsOf(test.obj, test.old)); got != test.want {
				t.Errorf("needs %q, want %q", got, test.want)
			}
		})
	}
}

func TestGiven(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	if got := Given(spec, v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}}, "etcdCluster"); len(got) > 0 {
		t.Errorf("%q are given, want none", got)
	}
	var full v1beta2.BackupSpec
	fill(spec, reflect.ValueOf(&full).Elem())
	for _, field := range []string{"spec.storageType", "spec.s3", "spec.abs", "spec.gcs", "spec.oss", "spec.persistentVolumeClaim", "spec.encryption",
		"spec.verify", "spec.compression", "spec.serviceAccountName", "spec.backupPolicy", "spec.clientTLSSecret", "spec.etcdEndpoints"} {
		if !slices.Contains(Given(spec, full, "etcdCluster"), field) {
			t.Errorf("%s is given, and is not noticed", field)
		}
	}
	if got := Given(spec, v1beta2.RestoreSpec{RevisionBump: ptr.To[int64](0)}); !slices.Equal(got, []string{"spec.revisionBump"}) {
		t.Errorf("%q are given, want spec.revisionBump", got)
	}
	meta := &metav1.ObjectMeta{
		Name: "mine", Labels: map[string]string{"why": "upgrade", "etcd_cluster": "b"},
		Annotations: map[string]string{"etcd.database.coreos.com/pre-restore-backup-of": "r", "note": "n"},
	}
	want := []string{"metadata.annotations[etcd.database.coreos.com/pre-restore-backup-of]", "metadata.labels[etcd_cluster]"}
	if got := GivenMetadata(meta); !slices.Equal(got, want) {
		t.Errorf("%q are given, want %q", got, want)
	}
}

// TestNeedsOfAJob: proxies, labels and annotations decide where the credentials of a store go, and pull Secrets name
// credentials, so that they count. Labels and annotations also decide which programs read the client certificate of the
// cluster, which an EtcdBackup does not name. Fields that only decide where a pod runs do not count, nor do empty ones.
func TestNeedsOfAJob(t *testing.T) {
	t.Parallel()
	annotated := &v1beta2.JobPolicy{Annotations: map[string]string{"a": "b"}}
	const store = "secrets/aws"
	for name, test := range map[string]struct {
		job, old *v1beta2.JobPolicy
		// backup is what an EtcdBackup needs that names a Secret, volume one that names none, cluster an EtcdCluster.
		backup, volume, cluster string
	}{
		"place":              {&v1beta2.JobPolicy{NodeSelector: map[string]string{"disk": "fast"}, PriorityClassName: "low"}, nil, "", "", ""},
		"proxy":              {&v1beta2.JobPolicy{Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://x"}}}, nil, store, "", store},
		"annotation":         {annotated, nil, "secrets/ " + store, "secrets/", store + " secrets/operator"},
		"label":              {&v1beta2.JobPolicy{Labels: map[string]string{"a": "b"}}, nil, "secrets/ " + store, "secrets/", store + " secrets/operator"},
		"another annotation": {&v1beta2.JobPolicy{Annotations: map[string]string{"a": "c"}}, annotated, "secrets/ " + store, "secrets/", store + " secrets/operator"},
		"no annotation":      {nil, annotated, store, "", store},
		"same annotation":    {&v1beta2.JobPolicy{Annotations: map[string]string{"a": "b"}, Labels: map[string]string{}, Env: []corev1.EnvVar{}}, annotated, "", "", ""},
		"pull secret":        {&v1beta2.JobPolicy{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}, nil, store + " secrets/registry", "secrets/registry", store + " secrets/registry"},
		"nothing":            {&v1beta2.JobPolicy{}, nil, "", "", ""},
		"empty fields": {&v1beta2.JobPolicy{
			Labels: map[string]string{}, Annotations: map[string]string{}, Env: []corev1.EnvVar{}, ImagePullSecrets: []corev1.LocalObjectReference{},
		}, nil, "", "", ""},
	} {
		objects := func(job *v1beta2.JobPolicy) [5]runtime.Object {
			volume := &v1beta2.PersistentVolumeClaimSource{ClaimName: "c"}
			return [...]runtime.Object{
				s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.Job = job }),
				s3Backup(func(b *v1beta2.EtcdBackup) {
					b.Spec.Job, b.Spec.BackupSource = job, v1beta2.BackupSource{PersistentVolumeClaim: volume}
				}),
				// A restore in place of it stores the data of a cluster with this job.
				s3Backup(func(b *v1beta2.EtcdBackup) {
					b.Spec.Job, b.Spec.BackupSource, b.Spec.EtcdCluster = job, v1beta2.BackupSource{PersistentVolumeClaim: volume}, nil
				}),
				&v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Job: job, RestoreSource: v1beta2.RestoreSource{PersistentVolumeClaim: volume}}},
				tlsCluster(func(s *v1beta2.ClusterSpec) { s.Backup.ServiceAccountName, s.Backup.Job = "", job }),
			}
		}
		made, old := objects(test.job), objects(test.old)
		for i, want := range []string{test.backup, test.volume, test.volume, test.volume, test.cluster} {
			if got := names(NeedsOf(made[i], old[i])); got != want {
				t.Errorf("%s: object %d, %T, needs %q, want %q", name, i, made[i], got, want)
			}
		}
	}
}

// TestLabelsOfAJobDoNotCountTwice: a change of other fields of an object with labels does not need the right to every Secret
// again, and a change of the cluster does.
func TestLabelsOfAJobDoNotCountTwice(t *testing.T) {
	t.Parallel()
	labeled := func(b *v1beta2.EtcdBackup) {
		b.Spec.Job = &v1beta2.JobPolicy{Labels: map[string]string{"a": "b"}}
	}
	for name, test := range map[string]struct {
		edit func(*v1beta2.EtcdBackup)
		want string
	}{
		"the store":         {func(b *v1beta2.EtcdBackup) { b.Spec.S3.Endpoint = "https://other.example.com" }, "secrets/aws"},
		"the place of pods": {func(b *v1beta2.EtcdBackup) { b.Spec.Job.PriorityClassName = "low" }, ""},
		"the cluster":       {func(b *v1beta2.EtcdBackup) { b.Spec.EtcdCluster.Name = "b" }, "secrets/ secrets/aws"},
	} {
		if got := names(NeedsOf(s3Backup(labeled, test.edit), s3Backup(labeled))); got != test.want {
			t.Errorf("%s: needs %q, want %q", name, got, test.want)
		}
	}
}
