// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

const agentImage = "quay.io/etcd-operator/etcd-operator:v0.1.0"

var scheduledTime = time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)

func newBackup(change func(*v1beta2.BackupSpec)) *v1beta2.EtcdBackup {
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "default", UID: "5a1f0c9e-2b60-4c55-8e0b-27c33a9de7c4"},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "example-etcd-cluster"}, StorageType: v1beta2.BackupStorageTypeS3,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/etcd", AWSSecret: "aws"}},
		},
	}
	if change != nil {
		change(&b.Spec)
	}
	v1beta2.SetObjectDefaults_EtcdBackup(b)
	return b
}

func onPVC(s *v1beta2.BackupSpec) {
	s.StorageType = v1beta2.BackupStorageTypePersistentVolumeClaim
	s.BackupSource = v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}}
}

func everyBackupOption(s *v1beta2.BackupSpec) {
	s.S3.CASecret, s.S3.Endpoint, s.S3.Region, s.S3.ForcePathStyle = "store-ca", "https://s3.example.com", "eu-1", true
	s.Encryption = &v1beta2.BackupEncryption{AgeRecipientsSecret: "keys"}
	s.Compression = v1beta2.CompressionZstd
	s.BackupPolicy = &v1beta2.BackupPolicy{
		Schedule: "0 3 * * *", MaxBackups: 7, MaxAge: &v1beta2.Duration{Duration: 720 * time.Hour}, TimeoutInSecond: 600,
	}
}

func byIdentity(s *v1beta2.BackupSpec) {
	s.StorageType, s.ServiceAccountName = v1beta2.BackupStorageTypeABS, "backups"
	s.BackupSource = v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "container/etcd", ABSSecret: "account"}}
}

func byEndpoints(s *v1beta2.BackupSpec) {
	s.EtcdCluster, s.EtcdEndpoints = nil, []string{"https://example-etcd-cluster-client:2379"}
	s.ClientTLSSecret = "etcd-client-tls"
}

// jobPolicy says everything that a user may say of the pods of Jobs.
func jobPolicy() *v1beta2.JobPolicy {
	return &v1beta2.JobPolicy{
		Labels: map[string]string{"team": "data"}, Annotations: map[string]string{"sidecar.istio.io/inject": "false"},
		NodeSelector: map[string]string{"disk": "fast"}, PriorityClassName: "low",
		Tolerations: []corev1.Toleration{{Key: "backups", Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}},
		}}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		Env:              []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}, {Name: "NO_PROXY", Value: ".svc"}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceEphemeralStorage: resource.MustParse("2Gi")},
		},
	}
}

func withJob(s *v1beta2.BackupSpec) { s.Job = jobPolicy() }

// TestJobPolicyWeakensNothing: what validation would reject changes nothing either that the
// controller guarantees about the pod of a Job.
func TestJobPolicyWeakensNothing(t *testing.T) {
	t.Parallel()
	plain, err := BackupJob(newBackup(nil), backupRun(newCluster(version("3.6.16"))))
	if err != nil {
		t.Fatal(err)
	}
	hostile := jobPolicy()
	hostile.Labels = map[string]string{LabelApp: AppName, LabelBackupUID: "other"}
	hostile.Annotations = map[string]string{AnnotationBackup: "other"}
	hostile.Env = []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "off"}}
	hostile.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}
	job, err := BackupJob(newBackup(func(s *v1beta2.BackupSpec) { s.Job = hostile }), backupRun(newCluster(version("3.6.16"))))
	if err != nil {
		t.Fatal(err)
	}
	checkBackupJob(t, job)
	was, is := plain.Spec.Template, job.Spec.Template
	if diff := cmp.Diff(was.ObjectMeta, is.ObjectMeta); diff != "" {
		t.Errorf("metadata:\n%s", diff)
	}
	if diff := cmp.Diff(was.Spec.Containers, is.Spec.Containers); diff != "" {
		t.Errorf("containers:\n%s", diff)
	}
	if diff := cmp.Diff(was.Spec.Volumes, is.Spec.Volumes); diff != "" {
		t.Errorf("volumes:\n%s", diff)
	}
}

func backupRun(c *v1beta2.EtcdCluster) BackupRun {
	run := BackupRun{ScheduledTime: scheduledTime, Attempt: 1, Image: agentImage, Cluster: c}
	if c != nil {
		run.Members = []MemberAddress{{Name: first, IP: "10.0.0.7"}, {Name: second, IP: "fd00::7"}}
	}
	return run
}

func TestGoldenBackups(t *testing.T) {
	t.Parallel()
	plain, secure := newCluster(version("3.6.16")), newCluster(version("3.6.16"), staticTLS)
	keep := newCluster(version("3.6.16"), policy(everyPolicy()))
	for name, test := range map[string]struct {
		spec    func(*v1beta2.BackupSpec)
		cluster *v1beta2.EtcdCluster
	}{
		"backup-s3":         {nil, plain},
		"backup-claim":      {onPVC, keep},
		"backup-everything": {everyBackupOption, secure},
		"backup-proof":      {func(s *v1beta2.BackupSpec) { s.Verify = v1beta2.VerificationRestore }, plain},
		"backup-endpoints":  {byEndpoints, nil},
		"backup-identity":   {byIdentity, plain},
		"backup-job":        {withJob, keep},
		"backup-job-proof":  {func(s *v1beta2.BackupSpec) { withJob(s); s.Verify = v1beta2.VerificationRestore }, plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, err := BackupJob(newBackup(test.spec), backupRun(test.cluster))
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, filepath.Join("testdata", name+".yaml"), job)
			checkBackupJob(t, job)
		})
	}
}

// checkBackupJob checks what holds for the Job of any backup.
func checkBackupJob(t *testing.T, job *batchv1.Job) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
	if broken := restricted(pod); len(broken) > 0 {
		t.Errorf("not restricted: %v", broken)
	}
	if pod.Labels[LabelApp] == AppName || pod.Labels[LabelCluster] != "" {
		t.Errorf("labels %v would put the pod behind the services of a cluster", pod.Labels)
	}
	if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
		t.Error("the pod has a token")
	}
	if job.Spec.BackoffLimit == nil || *job.Spec.BackoffLimit != 0 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("Kubernetes tries it again by itself")
	}
	mounted := map[string]bool{}
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("container %s has no limits", c.Name)
		}
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = true
		}
		for _, arg := range c.Args {
			raw, found := strings.CutPrefix(arg, "--"+agent.RequestFlag+"=")
			if !found {
				continue
			}
			if _, err := agent.DecodeRequest(agent.Command(c.Args[0]), []byte(raw)); err != nil {
				t.Errorf("container %s: the agent would reject its request: %v", c.Name, err)
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		if !mounted[v.Name] {
			t.Errorf("volume %s is mounted nowhere", v.Name)
		}
		if v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Errorf("a missing Secret %s keeps the pod from saying so", v.Secret.SecretName)
		}
	}
}

// TestBackupJobNames checks that an attempt has one name, and every other attempt,
// scheduled time and backup another, and that retries of one scheduled time are the same transfer.
func TestBackupJobNames(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, uid := range []types.UID{"a", "b"} {
		for _, name := range []string{"x", strings.Repeat("long.name-", 20)} {
			for n := range 5 {
				transfers := map[string]bool{}
				for attempt := int32(1); attempt <= 12; attempt++ {
					b := newBackup(nil)
					b.Name, b.UID = name, types.UID(name[:1])+uid
					at := scheduledTime.Add(time.Duration(n) * time.Second)
					got, what := BackupJobName(b, at, attempt), fmt.Sprint(b.UID, name, n, attempt)
					if other, taken := seen[got]; taken {
						t.Fatalf("%s and %s are both called %s", what, other, got)
					}
					seen[got] = what
					if messages := validation.IsDNS1123Label(got); len(messages) > 0 || len(got) > maxJobName {
						t.Fatalf("name %q: %v", got, messages)
					}
					if got != BackupJobName(b, at.In(time.FixedZone("", 3600)), attempt) {
						t.Fatalf("the name of %s changes", what)
					}
					transfers[backupHash(b, at, "")] = true
				}
				if len(transfers) != 1 {
					t.Fatalf("retries of one scheduled time are %d transfers", len(transfers))
				}
			}
		}
	}
}

// TestPlacesOfBackups checks where backups are stored: those of endpoints where they
// always were, and those of two EtcdBackups never among each other.
func TestPlacesOfBackups(t *testing.T) {
	t.Parallel()
	if !SharesKey(&corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--" + agent.RequestFlag + "={"}}}}) {
		t.Error("a request that cannot be read stores under a name of its own")
	}
	c := newCluster(version("3.6.16"))
	for name, test := range map[string]struct {
		spec    func(*v1beta2.BackupSpec)
		cluster *v1beta2.EtcdCluster
		layout  manifest.Layout
		key     string
	}{
		"cluster":   {nil, c, manifest.LayoutDirectory, "etcd/nightly"},
		"claim":     {onPVC, c, manifest.LayoutDirectory, "nightly"},
		"endpoints": {byEndpoints, nil, manifest.LayoutObject, "etcd"},
		"endpoints, series": {func(s *v1beta2.BackupSpec) {
			byEndpoints(s)
			s.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 5}
		}, nil, manifest.LayoutSeries, "etcd"},
		"endpoints, PVC": {func(s *v1beta2.BackupSpec) { byEndpoints(s); onPVC(s) }, nil, manifest.LayoutDirectory, "nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := backupRun(test.cluster)
			run.Attempt = 3
			job, err := BackupJob(newBackup(test.spec), run)
			if err != nil {
				t.Fatal(err)
			}
			if shares := SharesKey(&job.Spec.Template.Spec); shares != (test.layout != manifest.LayoutDirectory) {
				t.Errorf("stores under the name of other attempts: %t", shares)
			}
			var request agent.Request
			raw := strings.TrimPrefix(job.Spec.Template.Spec.Containers[0].Args[1], "--"+agent.RequestFlag+"=")
			if err := json.Unmarshal([]byte(raw), &request); err != nil {
				t.Fatal(err)
			}
			if request.Save.Attempt != run.Attempt {
				t.Errorf("the agent takes it for attempt %d", request.Save.Attempt)
			}
			if request.Save.Layout != test.layout || request.Store.Key != test.key {
				t.Errorf("layout %s at %q, want %s at %q", request.Save.Layout, request.Store.Key, test.layout, test.key)
			}
		})
	}
}

// TestGoldenRestores keeps the Jobs that look at backups as they are.
func TestGoldenRestores(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]RestoreCheck{
		"restore-s3": {Place: v1beta2.BackupPlace{
			StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/etcd", AWSSecret: "aws", CASecret: "store-ca"}},
			Decryption: &v1beta2.BackupDecryption{AgeIdentitiesSecret: "identities"},
		}, Target: RestoreTarget{Version: "3.6.16", MaxSize: 1 << 30}, Cluster: newCluster(version("3.6.16"), policy(everyPolicy()))},
		"restore-identity": {Place: v1beta2.BackupPlace{
			StorageType: v1beta2.BackupStorageTypeABS, ServiceAccountName: "backups",
			RestoreSource: v1beta2.RestoreSource{ABS: &v1beta2.ABSSource{Path: "container/etcd", Endpoint: "https://account.blob.core.windows.net"}},
		}},
		"restore-claim": {Place: v1beta2.BackupPlace{
			StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim, SHA256: "abc",
			RestoreSource: v1beta2.RestoreSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups", Path: "p"}},
		}},
		"restore-job": {Job: jobPolicy(), Place: v1beta2.BackupPlace{
			StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/etcd"}},
		}},
	} {
		check.Image, check.Attempt = agentImage, 1
		r := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "after.the-accident", Namespace: "default", UID: "0f0f"}}
		job, err := RestoreJob(r, check)
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, filepath.Join("testdata", name+".yaml"), job)
		checkBackupJob(t, job)
	}
}

// A search for the newest backup in a store must recognise a pre-restore backup.
func TestPreRestoreBackupIsMarked(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{true, false} {
		b := newBackup(nil)
		if marked {
			b.Annotations = map[string]string{AnnotationPreRestoreBackup: "back"}
		}
		job, err := BackupJob(b, backupRun(newCluster(version("3.6.16"))))
		if err != nil {
			t.Fatal(err)
		}
		var request agent.Request
		raw := strings.TrimPrefix(job.Spec.Template.Spec.Containers[0].Args[1], "--"+agent.RequestFlag+"=")
		if err := json.Unmarshal([]byte(raw), &request); err != nil {
			t.Fatal(err)
		}
		if request.Save.PreRestoreBackup != marked {
			t.Errorf("marked %t: asked for %+v", marked, request.Save)
		}
	}
}

// TestHeldBackupPrunesNothing: the retention of a held EtcdBackup deletes nothing, also of what its history does not list.
func TestHeldBackupPrunesNothing(t *testing.T) {
	t.Parallel()
	b := newBackup(everyBackupOption)
	if !Prunes(b) {
		t.Fatal("the retention deletes nothing")
	}
	hold := true
	b.Spec.Hold = &hold
	if Prunes(b) {
		t.Error("the retention of a held EtcdBackup deletes backups")
	}
}
