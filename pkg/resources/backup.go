// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Labels and annotations of the Jobs of a backup and of their pods. The label "app" is
// not that of members: no service of a cluster may select a Job.
const (
	// BackupAppName is the value of LabelApp.
	BackupAppName = "etcd-backup"
	// LabelBackupUID is the UID of the EtcdBackup.
	LabelBackupUID = "etcd_backup_uid"
	// AnnotationBackup is its name, which may be longer than a label.
	AnnotationBackup = "etcd.database.coreos.com/backup"
	// AnnotationScheduledTime is the time for which the backup was due.
	AnnotationScheduledTime = "etcd.database.coreos.com/backup-slot"
	// AnnotationAttempt is the number of the attempt.
	AnnotationAttempt = "etcd.database.coreos.com/backup-attempt"
	// AnnotationPreRestoreBackup on an EtcdBackup names the EtcdRestore before which it was made.
	AnnotationPreRestoreBackup = "etcd.database.coreos.com/pre-restore-backup-of"
	// AnnotationSource names what is backed up, for the bound of one at a time.
	AnnotationSource = "etcd.database.coreos.com/backup-source"
)

// Names of the containers of a backup's pod, in the order in which they run. Only
// ContainerSave is always there.
const (
	ContainerSave     = "save"
	ContainerInstall  = "install"
	ContainerFetch    = "fetch"
	ContainerRestore  = "restore"
	ContainerComplete = "complete"
)

const (
	// maxJobName leaves room for what Kubernetes appends to the names of pods.
	maxJobName = 52
	hashLength = 10
	// deadlineGrace is how much later than the agent Kubernetes ends an attempt.
	deadlineGrace = 60
	// agentGrace lets the agent abort an upload that was interrupted.
	agentGrace = 30

	scratchVolume = "scratch"
	scratchDir    = "/var/lib/etcd-agent/scratch"
	tempVolume    = "tmp"
	tempDir       = "/tmp"
	// manifestFile is out of reach of the container that runs etcd's image.
	manifestFile  = tempDir + "/manifest.json"
	etcdTLSVolume = "etcd-tls"
	recipients    = "recipients"
)

// BackupRun is one attempt at a backup.
type BackupRun struct {
	// ScheduledTime is when the backup was due; it names the backup in the store.
	ScheduledTime time.Time
	Attempt       int32
	// Image of the agent.
	Image string
	// Cluster that the backup is of; nil if it names endpoints.
	Cluster *v1beta2.EtcdCluster
	// Members of the cluster that run.
	Members []MemberAddress
	// Keep are the URIs of backups that restores read; the retention does not delete them.
	Keep []string
}

// MemberAddress is where a member that runs can be reached.
type MemberAddress struct{ Name, IP string }

// OwnerOfBackup returns the reference that makes b the controller of a Job.
func OwnerOfBackup(b *v1beta2.EtcdBackup) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         v1beta2.SchemeGroupVersion.String(),
		Kind:               "EtcdBackup",
		Name:               b.Name,
		UID:                b.UID,
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(false),
	}
}

// BackupLabels returns the labels of the Jobs of one EtcdBackup.
func BackupLabels(uid types.UID) map[string]string {
	return map[string]string{LabelApp: BackupAppName, LabelBackupUID: string(uid)}
}

// BackupJobName names the Job of an attempt. The same attempt always has the same
// name, so that it is never made twice.
func BackupJobName(b *v1beta2.EtcdBackup, scheduledTime time.Time, attempt int32) string {
	prefix := strings.ReplaceAll(b.Name, ".", "-")
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxJobName-hashLength-1)], "-")
	return prefix + "-" + backupHash(b, scheduledTime, strconv.Itoa(int(attempt)))
}

// backupHash is short and tells the scheduled times and attempts of all backups apart.
func backupHash(b *v1beta2.EtcdBackup, scheduledTime time.Time, more string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", b.UID, scheduledTime.Unix(), more))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// BackupJob returns the Job of one attempt. It is tried once: the controller decides
// about the next attempt. The error matches agent.ErrInvalid.
func BackupJob(b *v1beta2.EtcdBackup, run BackupRun) (*batchv1.Job, error) {
	pod, err := backupPod(b, run)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		AnnotationBackup:        b.Name,
		AnnotationScheduledTime: run.ScheduledTime.UTC().Format(time.RFC3339),
		AnnotationAttempt:       strconv.Itoa(int(run.Attempt)),
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            BackupJobName(b, run.ScheduledTime, run.Attempt),
			Namespace:       b.Namespace,
			Labels:          BackupLabels(b.UID),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{OwnerOfBackup(b)},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: BackupLabels(b.UID), Annotations: merged(annotations, nil)},
				Spec:       *pod,
			},
		},
	}
	useJobPolicy(job, b.Spec.Job)
	if run.Cluster != nil && b.Spec.StorageType == v1beta2.BackupStorageTypePersistentVolumeClaim {
		preferRecoveryNode(&job.Spec.Template.Spec, run.Cluster.Name)
	}
	var without []string
	if run.proves(b) {
		without = append(without, ContainerRestore) // it runs the image that the cluster names, and talks to no store
	}
	actAs(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec, b.Spec.ServiceAccountName, b.Spec.StorageType, without...)
	if timeout := timeoutOf(b); timeout > 0 {
		job.Spec.ActiveDeadlineSeconds = ptr.To(timeout + deadlineGrace)
	}
	return job, nil
}

func timeoutOf(b *v1beta2.EtcdBackup) int64 {
	if b.Spec.BackupPolicy == nil {
		return 0
	}
	return max(b.Spec.BackupPolicy.TimeoutInSecond, 0)
}

// ProvesByRestore is true if a scratch restore follows the backup. It needs etcd's own
// tools in the version of the cluster, and a backup that can be read: the recipients of
// an encrypted one are not enough for that.
func ProvesByRestore(b *v1beta2.EtcdBackup) bool {
	return b.Spec.Verify == v1beta2.VerificationRestore && b.Spec.EtcdCluster != nil && b.Spec.Encryption == nil
}

// proves is true if the pod of this attempt restores what it has stored.
func (r *BackupRun) proves(b *v1beta2.EtcdBackup) bool { return r.Cluster != nil && ProvesByRestore(b) }

// backupPod returns what the Job runs.
func backupPod(b *v1beta2.EtcdBackup, run BackupRun) (*corev1.PodSpec, error) {
	store, storeMounts, err := agent.BackupStore(b.Spec.StorageType, &b.Spec.BackupSource)
	if err != nil {
		return nil, err
	}
	layout, owner := backupPlace(b, run.Cluster, store)
	request := &agent.Request{
		ID:             backupHash(b, run.ScheduledTime, ""),
		TimeoutSeconds: timeoutOf(b),
		ProgressPort:   agent.ProgressPort,
		Etcd:           backedUp(b, run),
		Store:          store,
		Save:           &agent.Save{Layout: layout, Owner: owner, Started: run.ScheduledTime.UTC(), BackupUID: string(b.UID), Compression: b.Spec.Compression, PreRestoreBackup: b.Annotations[AnnotationPreRestoreBackup] != ""},
		Prune:          pruneOf(b, run, layout, owner),
		AbortUploads:   &agent.AbortUploads{Layout: layout, Owner: owner},
	}
	if run.Attempt > 1 {
		request.Save.Attempt = run.Attempt
	}
	if b.Spec.Verify == v1beta2.VerificationChecksum {
		request.Save.Verify = b.Spec.Verify
	}
	v := &podVolumes{}
	for _, m := range storeMounts {
		v.add(m)
	}
	if tls := etcdTLSSecret(b, run.Cluster); tls != "" {
		request.Etcd.TLSDir = agent.EtcdTLSDir
		v.add(agent.Mount{Name: etcdTLSVolume, Secret: tls, Path: agent.EtcdTLSDir, ReadOnly: true})
	}
	if e := b.Spec.Encryption; e != nil {
		request.Save.RecipientsDir = agent.RecipientsDir
		v.add(agent.Mount{Name: recipients, Secret: e.AgeRecipientsSecret, Path: agent.RecipientsDir, ReadOnly: true})
	}
	v.scratch(tempVolume, tempDir)
	proves := run.proves(b)
	complete := *request
	if proves {
		complete.Complete = &agent.Complete{Layout: layout, Owner: owner, ManifestFile: manifestFile}
		complete.Etcd, complete.Save, complete.ProgressPort = nil, nil, 0
		request.Save.ManifestFile, request.Prune = manifestFile, nil
	}
	save, err := agentContainer(ContainerSave, run.Image, agent.CommandSave, request, v.mounts)
	if err != nil {
		return nil, err
	}
	save.Ports = []corev1.ContainerPort{{Name: "progress", ContainerPort: agent.ProgressPort, Protocol: corev1.ProtocolTCP}}
	pod := &corev1.PodSpec{
		Containers:                    []corev1.Container{*save},
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To[int64](agentGrace),
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		SecurityContext:               podSecurityContext(&v1beta2.PodPolicy{}),
	}
	if run.Cluster != nil {
		// A user that restricts registries and nodes has done so in the cluster.
		policy := podPolicy(run.Cluster).DeepCopy()
		pod.ImagePullSecrets, pod.Tolerations = policy.ImagePullSecrets, policy.Tolerations
	}
	if proves {
		if err := addProof(pod, run, &complete, v); err != nil {
			return nil, err
		}
	}
	pod.Volumes = v.volumes
	return pod, nil
}

// addProof makes the pod restore what it has stored, in a scratch place. What is stored becomes a
// backup, and older backups are pruned, only in the last container: it starts if the
// proof has succeeded.
func addProof(pod *corev1.PodSpec, run BackupRun, last *agent.Request, v *podVolumes) error {
	mounts := v.mounts
	v.scratch(scratchVolume, scratchDir)
	file := path.Join(scratchDir, "snapshot.db")
	fetch, err := agentContainer(ContainerFetch, run.Image, agent.CommandFetch, &agent.Request{
		ID: last.ID, TimeoutSeconds: last.TimeoutSeconds, Store: last.Store,
		Fetch: &agent.Fetch{Expected: agent.Expected{TargetVersion: Version(run.Cluster)}, ManifestFile: manifestFile, File: file},
	}, v.mounts)
	if err != nil {
		return err
	}
	restore, err := agentContainer(ContainerRestore, Image(run.Cluster), agent.CommandRestore, &agent.Request{
		ID: last.ID, TimeoutSeconds: last.TimeoutSeconds,
		Restore: &agent.Restore{File: file, DataDir: path.Join(scratchDir, "data"), Scratch: true},
	}, v.mounts[len(v.mounts)-1:])
	if err != nil {
		return err
	}
	restore.Command = []string{path.Join(scratchDir, path.Base(agent.Program))}
	restore.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
	install := newAgentContainer(ContainerInstall, run.Image, []string{string(agent.CommandInstall), scratchDir}, v.mounts[len(v.mounts)-1:])
	complete, err := agentContainer(ContainerComplete, run.Image, agent.CommandComplete, last, mounts)
	if err != nil {
		return err
	}
	pod.InitContainers = []corev1.Container{pod.Containers[0], *install, *fetch, *restore}
	pod.Containers = []corev1.Container{*complete}
	return nil
}

// backupPlace says how the backup is named in the store. Where EtcdBackups share a backup
// location, it narrows the store to a location for this EtcdBackup, because no EtcdBackup
// may delete what the retention of another EtcdBackup keeps. Backups of endpoints stay where they
// always were.
func backupPlace(b *v1beta2.EtcdBackup, c *v1beta2.EtcdCluster, store *agent.Store) (manifest.Layout, manifest.Owner) {
	owner := manifest.Owner{Namespace: b.Namespace, Name: b.Name, UID: string(b.UID)}
	if c != nil {
		owner.Name, owner.UID = c.Name, string(c.UID)
	} else if store.Key != "" {
		if b.Spec.IsPeriodic() {
			return manifest.LayoutSeries, owner
		}
		return manifest.LayoutObject, owner
	}
	store.Key = path.Join(store.Key, b.Name)
	return manifest.LayoutDirectory, owner
}

// Prunes is true of an EtcdBackup whose retention deletes backups.
func Prunes(b *v1beta2.EtcdBackup) bool {
	return pruneOf(b, BackupRun{}, manifest.LayoutDirectory, manifest.Owner{}) != nil
}

func pruneOf(b *v1beta2.EtcdBackup, run BackupRun, layout manifest.Layout, owner manifest.Owner) *agent.Prune {
	if !b.Spec.IsPeriodic() || b.IsHeld() {
		return nil
	}
	p := &agent.Prune{Layout: layout, Owner: owner, BackupUID: string(b.UID), Keep: keptPlaces(run.Keep), Count: max(b.Spec.BackupPolicy.MaxBackups, 0)}
	if age := b.Spec.BackupPolicy.MaxAge; age != nil {
		p.MaxAgeSeconds = int64(age.Duration / time.Second)
	}
	if p.Count == 0 && p.MaxAgeSeconds == 0 {
		return nil
	}
	return p
}

// backedUp returns the members that the agent reads from. The addresses of pods work before their names
// do; certificates are checked against the names.
func backedUp(b *v1beta2.EtcdBackup, run BackupRun) *agent.Etcd {
	etcd := &agent.Etcd{}
	for _, m := range run.Members {
		etcd.Endpoints = append(etcd.Endpoints, agent.Endpoint{
			Name: m.Name, URL: ClientURL(run.Cluster, m.Name), Address: hostPort(m.IP, ClientPort),
			MemberID: ReportedMemberID(run.Cluster, m.Name),
		})
	}
	if run.Cluster == nil {
		for _, url := range b.Spec.EtcdEndpoints {
			etcd.Endpoints = append(etcd.Endpoints, agent.Endpoint{URL: url})
		}
	}
	return etcd
}

// hostPort joins an address of either family with a port.
func hostPort(ip string, port int) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return ip + ":" + strconv.Itoa(port)
}

func etcdTLSSecret(b *v1beta2.EtcdBackup, c *v1beta2.EtcdCluster) string {
	if c != nil {
		return Secrets(c).Operator
	}
	return b.Spec.ClientTLSSecret
}

// podVolumes collects volumes and where they are mounted.
type podVolumes struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
}

// add mounts a secret or a PVC.
func (v *podVolumes) add(m agent.Mount) {
	v.volumes = append(v.volumes, mountedVolume(m))
	v.mounts = append(v.mounts, corev1.VolumeMount{Name: m.Name, MountPath: m.Path, ReadOnly: m.ReadOnly})
}

func (v *podVolumes) scratch(name, dir string) {
	v.volumes = append(v.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	v.mounts = append(v.mounts, corev1.VolumeMount{Name: name, MountPath: dir})
}
