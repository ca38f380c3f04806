// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Labels and annotations of the Jobs of a restore and of their pods.
const (
	// RestoreAppName is the value of LabelApp.
	RestoreAppName = "etcd-restore"
	// LabelRestoreUID is the UID of the EtcdRestore.
	LabelRestoreUID = "etcd_restore_uid"
	// AnnotationRestoreJob is its name, which may be longer than a label.
	AnnotationRestoreJob = "etcd.database.coreos.com/restore-of"
	// AnnotationRestoreAttempt is the number of the attempt.
	AnnotationRestoreAttempt = "etcd.database.coreos.com/restore-attempt"
	// AnnotationRestoreTarget is what the backup was checked against.
	AnnotationRestoreTarget = "etcd.database.coreos.com/restore-target"
)

// ContainerVerify is the container of the Job that reads a backup before anything is
// done with it.
const ContainerVerify = "verify"

const (
	identitiesVolume = "identities"
	// restoreOverhead is what a data directory needs beside the database: the log that
	// etcd allocates in advance, and room for the next piece of it.
	restoreOverhead = 2 * 64 << 20
	// agentRoom is more than the agent takes, which a recovery member holds beside the snapshot.
	agentRoom = 48 << 20
)

// RestoreCheck is one look at a backup.
type RestoreCheck struct {
	Attempt int32
	// Image of the agent.
	Image string
	// Place is the backup location.
	Place v1beta2.BackupPlace
	// Target is what it is checked against.
	Target RestoreTarget
	// Cluster that is restored, or that will be made; nil if nothing is known of it.
	Cluster *v1beta2.EtcdCluster
	// Job says where and how the pod runs; it may be nil.
	Job *v1beta2.JobPolicy
}

// RestoreTarget is what a backup must fit.
type RestoreTarget struct {
	// Version of etcd that will serve the data; empty if it is that of the backup.
	Version string
	// MaxSize of the database in bytes; 0 if it is not known.
	MaxSize int64
}

// String is the same for the same target.
func (t RestoreTarget) String() string { return fmt.Sprintf("%s/%d", t.Version, t.MaxSize) }

// RestoreTargetOf returns the limits that a backup must fit to be restored into c: the
// version, the quota, the volume of a member, and the pod's limit of ephemeral storage.
func RestoreTargetOf(c *v1beta2.EtcdCluster) RestoreTarget {
	t := RestoreTarget{Version: Version(c), MaxSize: QuotaBackendBytes(c)}
	if t.MaxSize < 0 {
		t.MaxSize = 0 // etcd knows no quota then
	}
	for _, room := range []int64{volumeRoom(c), ephemeralRoom(c)} {
		if room > 0 && (t.MaxSize == 0 || room < t.MaxSize) {
			t.MaxSize = room
		}
	}
	return t
}

// volumeRoom is how large a database the volume of a member takes; 0 if that is not known.
func volumeRoom(c *v1beta2.EtcdCluster) int64 {
	spec := podPolicy(c).PersistentVolumeClaimSpec
	if spec == nil {
		return 0
	}
	volume := spec.Resources.Requests.Storage().Value()
	return max(volume-restoreOverhead, volume/2)
}

// ephemeralRoom is how large a snapshot a recovery member may hold before Kubernetes evicts it; 0 if
// nothing limits that. Without a volume the data lies beside the snapshot that it was
// restored from.
func ephemeralRoom(c *v1beta2.EtcdCluster) int64 {
	limit, found := podPolicy(c).Resources.Limits[corev1.ResourceEphemeralStorage]
	if !found || limit.IsZero() {
		return 0
	}
	room := limit.Value() - agentRoom
	if podPolicy(c).PersistentVolumeClaimSpec == nil {
		room = (room - restoreOverhead) / 2
	}
	return max(room, 1)
}

// RestoreLabels returns the labels of the Jobs of one EtcdRestore.
func RestoreLabels(uid types.UID) map[string]string {
	return map[string]string{LabelApp: RestoreAppName, LabelRestoreUID: string(uid)}
}

// RestoreJobName names the Job of an attempt. The same attempt always has the same name,
// so that it is never made twice.
func RestoreJobName(r *v1beta2.EtcdRestore, attempt int32) string {
	prefix := strings.ReplaceAll(r.Name, ".", "-")
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxJobName-hashLength-1)], "-")
	return prefix + "-" + restoreHash(r, strconv.Itoa(int(attempt)))
}

func restoreHash(r *v1beta2.EtcdRestore, more string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", r.UID, more))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// RestoreJob returns the Job that reads a backup from its store and checks it: its hash,
// its manifest, its version and its size. It changes nothing. The error matches
// agent.ErrInvalid.
func RestoreJob(r *v1beta2.EtcdRestore, check RestoreCheck) (*batchv1.Job, error) {
	pod, err := restorePod(r, check)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		AnnotationRestoreJob:     r.Name,
		AnnotationRestoreAttempt: strconv.Itoa(int(check.Attempt)),
		AnnotationRestoreTarget:  check.Target.String(),
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: RestoreJobName(r, check.Attempt), Namespace: r.Namespace, Labels: RestoreLabels(r.UID), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{OwnerOfRestore(r)},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: RestoreLabels(r.UID), Annotations: merged(annotations, nil)},
				Spec:       *pod,
			},
		},
	}
	useJobPolicy(job, check.Job)
	actAs(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec, check.Place.ServiceAccountName, check.Place.StorageType)
	return job, nil
}

// OwnerOfRestore returns the reference that makes r the controller of a Job.
func OwnerOfRestore(r *v1beta2.EtcdRestore) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "EtcdRestore", Name: r.Name, UID: r.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}
}

func restorePod(r *v1beta2.EtcdRestore, check RestoreCheck) (*corev1.PodSpec, error) {
	store, mounts, err := agent.RestoreStore(check.Place.StorageType, &check.Place.RestoreSource)
	if err != nil {
		return nil, err
	}
	request := &agent.Request{
		ID: restoreHash(r, ""), ProgressPort: agent.ProgressPort, Store: store,
		Verify: &agent.Verify{Expected: agent.Expected{
			SHA256: check.Place.SHA256, TargetVersion: check.Target.Version, MaxSize: check.Target.MaxSize,
		}},
	}
	v := &podVolumes{}
	for _, m := range mounts {
		m.ReadOnly = true
		v.add(m)
	}
	if d := check.Place.Decryption; d != nil {
		request.Verify.IdentitiesDir = agent.IdentitiesDir
		v.add(agent.Mount{Name: identitiesVolume, Secret: d.AgeIdentitiesSecret, Path: agent.IdentitiesDir, ReadOnly: true})
	}
	v.scratch(tempVolume, tempDir)
	verify, err := agentContainer(ContainerVerify, check.Image, agent.CommandVerify, request, v.mounts)
	if err != nil {
		return nil, err
	}
	verify.Ports = []corev1.ContainerPort{{Name: "progress", ContainerPort: agent.ProgressPort, Protocol: corev1.ProtocolTCP}}
	pod := &corev1.PodSpec{
		Containers:                    []corev1.Container{*verify},
		Volumes:                       v.volumes,
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To[int64](agentGrace),
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		SecurityContext:               podSecurityContext(&v1beta2.PodPolicy{}),
	}
	if check.Cluster != nil {
		policy := podPolicy(check.Cluster).DeepCopy()
		pod.ImagePullSecrets, pod.Tolerations = policy.ImagePullSecrets, policy.Tolerations
	}
	return pod, nil
}
