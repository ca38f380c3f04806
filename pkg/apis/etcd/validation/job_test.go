// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func limits(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

// TestJobPolicy: what a user may say of the pods of Jobs, and which error names which field.
func TestJobPolicy(t *testing.T) {
	t.Parallel()
	env := func(variables ...corev1.EnvVar) *v1beta2.JobPolicy { return &v1beta2.JobPolicy{Env: variables} }
	label := func(key string) *v1beta2.JobPolicy { return &v1beta2.JobPolicy{Labels: map[string]string{key: "x"}} }
	annotation := func(key string) *v1beta2.JobPolicy {
		return &v1beta2.JobPolicy{Annotations: map[string]string{key: "x"}}
	}
	for name, test := range map[string]struct {
		job *v1beta2.JobPolicy
		// wants are parts of the only error; none if there is to be no error.
		wants []string
	}{
		"none":  {nil, nil},
		"empty": {&v1beta2.JobPolicy{}, nil},
		"all": {&v1beta2.JobPolicy{
			Labels: map[string]string{"team": "data"}, Annotations: map[string]string{"sidecar.istio.io/inject": "false"},
			NodeSelector: map[string]string{"disk": "fast"}, Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}},
			PriorityClassName: "low", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, Resources: limits("512Mi"),
			Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}, {Name: "https_proxy", Value: "http://proxy:3128"}, {Name: "no_proxy", Value: ".svc,10.0.0.0/8"}},
		}, nil},
		"variable of the agent":    {env(corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1"}), []string{"spec.job.env[0].name", "HTTPS_PROXY"}},
		"credentials of AWS":       {env(corev1.EnvVar{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: "/x"}), []string{"spec.job.env[0].name"}},
		"authorities":              {env(corev1.EnvVar{Name: "SSL_CERT_FILE", Value: "/x"}), []string{"spec.job.env[0].name"}},
		"an endpoint":              {env(corev1.EnvVar{Name: "AWS_ENDPOINT_URL", Value: "http://x"}), []string{"spec.job.env[0].name"}},
		"mixed case":               {env(corev1.EnvVar{Name: "Https_Proxy", Value: "x"}), []string{"spec.job.env[0].name", "upper"}},
		"twice":                    {env(corev1.EnvVar{Name: "NO_PROXY"}, corev1.EnvVar{Name: "NO_PROXY"}), []string{"spec.job.env[1].name", "Duplicate"}},
		"no name":                  {env(corev1.EnvVar{Value: "x"}), []string{"spec.job.env[0].name", "HTTP_PROXY"}},
		"a password":               {env(corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://u:secret@proxy"}), []string{"spec.job.env[0].value", "password"}},
		"a line feed":              {env(corev1.EnvVar{Name: "HTTP_PROXY", Value: "a\nb"}), []string{"spec.job.env[0].value"}},
		"valueFrom":                {env(corev1.EnvVar{Name: "HTTP_PROXY", ValueFrom: &corev1.EnvVarSource{}}), []string{"spec.job.env[0].valueFrom", "set value"}},
		"label of the controller":  {label("etcd_backup_uid"), []string{"spec.job.labels[etcd_backup_uid]"}},
		"label app":                {label("app"), []string{"spec.job.labels[app]"}},
		"label of Jobs":            {label("batch.kubernetes.io/job-name"), []string{"spec.job.labels[batch.kubernetes.io/job-name]", "Job controller"}},
		"old label of Jobs":        {label("controller-uid"), []string{"spec.job.labels[controller-uid]"}},
		"label of an identity":     {label("azure.workload.identity/use"), []string{"azure.workload.identity/use", "serviceAccountName"}},
		"annotation of controller": {annotation("etcd.database.coreos.com/backup"), []string{"spec.job.annotations[etcd.database.coreos.com/backup]"}},
		"AppArmor":                 {annotation("container.apparmor.security.beta.kubernetes.io/save"), []string{"security context"}},
		"little memory":            {&v1beta2.JobPolicy{Resources: limits("64Mi")}, []string{"spec.job.resources.limits[memory]", "256Mi"}},
		"an endless quantity":      {&v1beta2.JobPolicy{Resources: limits("1e999999999")}, []string{"spec.job.resources.limits[memory]"}},
		"a claim":                  {&v1beta2.JobPolicy{Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "x"}}}}, []string{"spec.job.resources.claims"}},
		"a wrong selector":         {&v1beta2.JobPolicy{NodeSelector: map[string]string{"a b": "c"}}, []string{"spec.job.nodeSelector"}},
		"a nameless pull secret":   {&v1beta2.JobPolicy{ImagePullSecrets: []corev1.LocalObjectReference{{}}}, []string{"spec.job.imagePullSecrets[0].name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := validateJobPolicy(test.job, field.NewPath("spec", "job"))
			if (len(errs) == 0) != (len(test.wants) == 0) || len(errs) > 1 {
				t.Fatalf("got %v", errs)
			}
			for _, want := range test.wants {
				if !strings.Contains(errs[0].Error(), want) {
					t.Errorf("%q is missing in: %v", want, errs[0])
				}
			}
			if len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), "secret@") {
				t.Errorf("the error repeats a password: %v", errs)
			}
		})
	}
}

// TestJobPolicyAtOnce: requests that are rejected at the same time share no state. The race
// detector sees it if they do.
func TestJobPolicyAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if errs := validateJobPolicy(&v1beta2.JobPolicy{Resources: limits("64Mi")}, field.NewPath("spec", "job")); len(errs) != 1 {
				t.Errorf("got %v", errs)
			}
		})
	}
	group.Wait()
}

// TestStorageClasses: a class from which nothing is read at once fails every backup, and a key
// without its algorithm has no effect.
func TestStorageClasses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source v1beta2.BackupSource
		want   string
	}{
		"S3":                {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", StorageClass: "STANDARD_IA", ServerSideEncryption: "aws:kms", KMSKeyID: "arn:aws:kms:eu-central-1:1:key/a-b"}}, ""},
		"S3, frozen":        {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", StorageClass: "DEEP_ARCHIVE"}}, "spec.s3.storageClass"},
		"S3, no class":      {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", StorageClass: "cheap one"}}, "spec.s3.storageClass"},
		"key, no algorithm": {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", KMSKeyID: "k"}}, "spec.s3.kmsKeyID"},
		"no key":            {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", ServerSideEncryption: "aws:kms", KMSKeyID: "a b"}}, "spec.s3.kmsKeyID"},
		"GCS":               {v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k", StorageClass: "NEARLINE"}}, ""},
		"GCS, no class":     {v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k", StorageClass: "near line"}}, "spec.gcs.storageClass"},
		"ABS":               {v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/k", ABSSecret: "s", AccessTier: "Cool"}}, ""},
		"ABS, frozen":       {v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/k", ABSSecret: "s", AccessTier: "Archive"}}, "spec.abs.accessTier"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := validateSources(backupPlace("", &test.source, field.NewPath("spec")), field.NewPath("spec"))
			if (test.want == "") != (len(errs) == 0) || test.want != "" && errs[0].Field != test.want {
				t.Errorf("got %v", errs)
			}
		})
	}
}
