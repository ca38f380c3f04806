// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func fromStore(storage v1beta2.BackupStorageType, account string) func(*v1beta2.RecoveryStatus) {
	return func(r *v1beta2.RecoveryStatus) {
		place := &v1beta2.BackupPlace{StorageType: storage, ServiceAccountName: account}
		switch storage {
		case v1beta2.BackupStorageTypeABS:
			place.ABS = &v1beta2.ABSSource{Path: "container/key", Endpoint: "https://account.blob.core.windows.net"}
		default:
			place.S3 = &v1beta2.S3RestoreSource{Path: "bucket/key"}
		}
		r.Source = v1beta2.RecoverySource{Restore: "r", Backup: place}
	}
}

// TestRecoveryPodUsesServiceAccountOfTheStore: the recovery pod has the service account that the store knows, because
// one of its containers fetches. The annotations exclude etcd from the token of that
// account. A container that is not named there gets a token.
func TestRecoveryPodUsesServiceAccountOfTheStore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		storage v1beta2.BackupStorageType
		account string
		azure   string
	}{
		"aws":     {v1beta2.BackupStorageTypeS3, "reader", ""},
		"azure":   {v1beta2.BackupStorageTypeABS, "reader", "true"},
		"nobody":  {v1beta2.BackupStorageTypeS3, "", ""},
		"default": {v1beta2.BackupStorageTypeABS, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, err := RecoveryPod(lostCluster(true), recovery(fromStore(test.storage, test.account)), MemberPod{}, "agent:1")
			if err != nil {
				t.Fatal(err)
			}
			comma, semicolon := "", ""
			if test.account != "" {
				comma, semicolon = "restore-data,etcd", "restore-data;etcd"
			}
			if pod.Spec.ServiceAccountName != test.account || pod.Labels[labelAzureIdentity] != test.azure ||
				pod.Annotations[annotationAWSWithout] != comma || pod.Annotations[annotationAzureWithout] != semicolon {
				t.Errorf("service account %q, labels %v, annotations %v", pod.Spec.ServiceAccountName, pod.Labels, pod.Annotations)
			}
			if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
				t.Error("Kubernetes would mount a token of its own")
			}
			if pod.Spec.Containers[0].Name != ContainerName || len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 2 {
				t.Error("there are other containers than those that are left without a token")
			}
		})
	}
}

// TestProofHasNoServiceAccountToken: the container that runs the image of a cluster gets no token of the ServiceAccount with
// which a backup is stored. The agent's own containers talk to the store, and need it.
func TestProofHasNoServiceAccountToken(t *testing.T) {
	t.Parallel()
	for verify, want := range map[v1beta2.Verification]string{v1beta2.VerificationRestore: ContainerRestore, v1beta2.VerificationChecksum: ""} {
		b := newBackup(func(s *v1beta2.BackupSpec) { byIdentity(s); s.Verify = verify })
		cluster := newCluster()
		job, err := BackupJob(b, BackupRun{ScheduledTime: scheduledTime, Attempt: 1, Image: agentImage, Cluster: cluster, Members: []MemberAddress{{Name: "m", IP: "10.0.0.1"}}})
		if err != nil {
			t.Fatal(err)
		}
		template := &job.Spec.Template
		if template.Spec.ServiceAccountName != "backups" || template.Annotations[annotationAWSWithout] != want || template.Annotations[annotationAzureWithout] != want {
			t.Errorf("%s: ServiceAccount %q, annotations %v", verify, template.Spec.ServiceAccountName, template.Annotations)
		}
		for container := range containersOf(&template.Spec) {
			if container.Image == Image(cluster) && container.Name != want {
				t.Errorf("%s: container %s runs the image of the cluster, and is not left out", verify, container.Name)
			}
		}
	}
}

// TestMemberHasNoServiceAccountToken: the pod that a restored member has later, and that of one
// that has served from its volume, are those of every member.
func TestMemberHasNoServiceAccountToken(t *testing.T) {
	t.Parallel()
	served := recovery(fromStore(v1beta2.BackupStorageTypeABS, "reader"))
	served.Phase = v1beta2.RecoveryPhaseCutover
	again, err := RecoveryPod(lostCluster(true), served, MemberPod{}, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	later := Pod(lostCluster(true), MemberPod{Name: served.RecoveryMember})
	for what, pod := range map[string]string{"again": again.Spec.ServiceAccountName, "later": later.Spec.ServiceAccountName} {
		if pod != "" {
			t.Errorf("%s: service account %q", what, pod)
		}
	}
	if again.Labels[labelAzureIdentity] != "" || len(again.Annotations[annotationAWSWithout]) > 0 {
		t.Errorf("labels %v, annotations %v", again.Labels, again.Annotations)
	}
}
