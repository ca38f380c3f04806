// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// LabelRecovery on the pod or the PVC of a recovery member names the cluster. It stands
	// in the place of LabelCluster while the recovery member is hidden from the Services.
	LabelRecovery = "etcd_recovery"
	// LabelFenced names the cluster whose member it was before a recovery. It stands in
	// the place of LabelCluster.
	LabelFenced = "etcd_retired"
)

const (
	// maxFillName of the name of a recovery member is in fillID, which has at most 63 bytes.
	maxFillName    = 63 - 1 - hashLength
	loopback       = "127.0.0.1"
	agentVolume    = "etcd-agent"
	agentDir       = "/opt/etcd-agent"
	operatorVolume = "etcd-client-tls"
	sourceVolume   = "source"
	sourceMount    = "/var/lib/etcd-agent/source"
	// snapshotFile goes with the pod: the volume of the member keeps the data only.
	snapshotFile = agentDir + "/snapshot.db"
)

// Names of the init containers of a recovery member, in the order in which they run. InitInstall runs only where
// InitFetch runs in the image of etcd. In the image of the agent, InitFetch copies the agent, too.
const (
	InitInstall = "install-agent"
	InitFetch   = "fetch-snapshot"
	InitRestore = "restore-data"
)

// RecoveryPod returns the pod of the recovery member. Its init containers fill the data
// directory: the agent fetches the snapshot and checks it, and, in etcd's own image,
// etcd's own program restores it. Should that leave nothing, etcd finds no cluster to
// join and ends: such a pod never starts an empty cluster. What m says of certificates is
// kept.
func RecoveryPod(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus, m MemberPod, agentImage string) (*corev1.Pod, error) {
	peer := Peer{Name: r.RecoveryMember, URL: PeerURL(c, r.RecoveryMember)}
	m.Name, m.InitialCluster = r.RecoveryMember, []Peer{peer}
	pod := Pod(c, m)
	hide(&pod.Labels, c.Name)
	CopyRecovery(pod, r)
	if r.Phase == v1beta2.RecoveryPhaseCutover && PVC(c, r.RecoveryMember) != nil {
		return pod, nil // it has served from its volume
	}
	if PVC(c, r.RecoveryMember) != nil {
		// This pod is never published: an ordinary one follows it on the volume. It has no clients to drain.
		pod.Spec.Containers[0].Lifecycle = nil
	}
	fill := fetchContainer
	if r.Source.PVC != "" {
		fill = salvageContainer
	}
	fetch, err := fill(c, r, agentImage, pod)
	if err != nil {
		return nil, err
	}
	restore := &agent.Request{ID: fillID(c, r), Restore: &agent.Restore{
		File: snapshotFile, DataDir: dataDir, Name: r.RecoveryMember, InitialCluster: initialCluster([]Peer{peer}),
		InitialClusterToken: LineageToken(c, r), PeerURLs: []string{peer.URL}, RevisionBump: r.RevisionBump,
	}}
	args, err := restore.Args(agent.CommandRestore)
	if err != nil {
		return nil, fmt.Errorf("init container %s: %w", InitRestore, err)
	}
	unpack := initContainer(c, InitRestore, Image(c), append([]string{agentDir + agent.Program}, args...)...)
	pod.Spec.InitContainers = []corev1.Container{*fetch, unpack}
	if fetch.Image != agentImage {
		install := initContainer(c, InitInstall, agentImage, agent.Program, string(agent.CommandInstall), agentDir)
		pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, install)
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: agentVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	for i := range pod.Spec.InitContainers {
		ctr := &pod.Spec.InitContainers[i]
		if ctr.Name == InitInstall {
			continue
		}
		ctr.Env = append(ctr.Env, corev1.EnvVar{Name: agent.PublishedEnv, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['" + LabelCluster + "']"}, // a hidden pod has no such label
		}})
		// Both look first whether the data directory is filled.
		ctr.VolumeMounts = append(ctr.VolumeMounts, corev1.VolumeMount{Name: dataVolume, MountPath: dataMount, ReadOnly: ctr.Name != InitRestore})
	}
	if !featuresOf(Version(c)).restoresNameless {
		// A hidden recovery member has no name in the DNS. No program dials this address.
		pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: loopback, Hostnames: []string{Host(c, r.RecoveryMember)}})
	}
	if place := r.Source.Backup; place != nil {
		// Only the container that fetches needs the account. etcd shares the pod, but is given no token of it.
		actAs(&pod.ObjectMeta, &pod.Spec, place.ServiceAccountName, place.StorageType, InitRestore, ContainerName)
	}
	return pod, nil
}

// fillID identifies what fills the data directory of a recovery member. The marker in the directory holds
// it, so that data of another recovery, of another source or of another cluster never counts.
func fillID(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus) string {
	sha := ""
	if r.Source.Backup != nil {
		sha = r.Source.Backup.SHA256
	}
	from := fmt.Appendf(nil, "%s/%s/%s/%s/%s/%s/%d", LineageToken(c, r), r.ID, r.Source.Member, r.Source.PVC, r.Source.Restore, sha, r.RevisionBump)
	sum := sha256.Sum256(from)
	return r.RecoveryMember[:min(len(r.RecoveryMember), maxFillName)] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Fills is true for a pod that still has what filled its data directory: init containers, Secrets, volumes
// and a cloud identity. An ordinary pod of the member has none of these. The pod of a member that an
// earlier release has filled stays as it is, because an upgrade of the controller replaces no pods.
func Fills(pod *corev1.Pod) bool {
	says := func(arg string) bool { return strings.Contains(arg, agent.FilledDirKey) }
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == InitFetch && slices.ContainsFunc(slices.Concat(c.Command, c.Args), says)
	}) || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == sourceVolume })
}

// LineageToken is the initial cluster token of the members that a recovery makes. It
// gives them another cluster ID than those before, so that neither ever talk to the
// other.
func LineageToken(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus) string {
	return string(c.UID) + "/" + r.RecoveryMember
}

// RecoveryPVC returns the hidden PVC of the recovery member; nil without volumes.
func RecoveryPVC(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus) *corev1.PersistentVolumeClaim {
	pvc := PVC(c, r.RecoveryMember)
	if pvc != nil {
		hide(&pvc.Labels, c.Name)
		CopyRecovery(pvc, r)
	}
	return pvc
}

// MarkUnfilled has the new PVC of a recovery member that has served say that what was on its volume is lost,
// so that every pod for it fetches the backup again. No client has written to that member.
func MarkUnfilled(pvc *corev1.PersistentVolumeClaim) {
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, AnnotationMembership, MembershipUnfilled)
}

// IsUnfilled is true for a PVC after MarkUnfilled.
func IsUnfilled(pvc *corev1.PersistentVolumeClaim) bool {
	return pvc.Annotations[AnnotationMembership] == MembershipUnfilled
}

// salvageContainer makes a snapshot from the PVC of a member that has stopped. It runs in etcd's
// own image, as the etcd that has written the data: only etcd can replay its log, and the data may
// be readable for its user only. The container sees the volume read-only. The pod does not: a
// volume that is attached read-only cannot be mounted after a power failure, before its file
// system has replayed its journal.
func salvageContainer(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus, _ string, pod *corev1.Pod) (*corev1.Container, error) {
	request := &agent.Request{ID: fillID(c, r), FilledDir: dataDir, Salvage: &agent.Salvage{
		DataDir: sourceMount + strings.TrimPrefix(dataDir, dataMount), WorkDir: agentDir + "/source", File: snapshotFile,
	}}
	args, err := request.Args(agent.CommandSalvage)
	if err != nil {
		return nil, fmt.Errorf("init container %s: %w", InitFetch, err)
	}
	container := initContainer(c, InitFetch, Image(c), append([]string{agentDir + agent.Program}, args...)...)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name:         sourceVolume,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.Source.PVC}},
	})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: sourceVolume, MountPath: sourceMount, ReadOnly: true})
	return &container, nil
}

// DropSource takes the PVC that a recovery reads from the pod of its recovery member, because no pod starts with a PVC
// that is lost. The init containers still look for the marker of this recovery in the data directory. If the data is complete,
// etcd starts; otherwise the pod fails and says so.
func DropSource(pod *corev1.Pod) {
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == sourceVolume })
	for i := range pod.Spec.InitContainers {
		ctr := &pod.Spec.InitContainers[i]
		ctr.VolumeMounts = slices.DeleteFunc(ctr.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == sourceVolume })
	}
}

// fetchContainer fetches the snapshot, and adds to the pod what that needs.
func fetchContainer(c *v1beta2.EtcdCluster, r *v1beta2.RecoveryStatus, image string, pod *corev1.Pod) (*corev1.Container, error) {
	request := &agent.Request{ID: fillID(c, r), FilledDir: dataDir, Fetch: &agent.Fetch{File: snapshotFile, InstallDir: agentDir}}
	var mounts []agent.Mount
	if place := r.Source.Backup; place != nil {
		store, needed, err := agent.RestoreStore(place.StorageType, &place.RestoreSource)
		if err != nil {
			return nil, fmt.Errorf("init container %s: %w", InitFetch, err)
		}
		request.Store, mounts = store, needed
		request.Fetch.SHA256, request.Fetch.TargetVersion = place.SHA256, Version(c)
		request.Fetch.MaxSize = RestoreTargetOf(c).MaxSize
		if d := place.Decryption; d != nil {
			request.Fetch.IdentitiesDir = agent.IdentitiesDir
			mounts = append(mounts, agent.Mount{Name: "identities", Secret: d.AgeIdentitiesSecret, Path: agent.IdentitiesDir, ReadOnly: true})
		}
	} else {
		request.Etcd = &agent.Etcd{Endpoints: []agent.Endpoint{{Name: r.Source.Member, URL: ClientURL(c, r.Source.Member)}}}
		if secret := Secrets(c).Operator; secret != "" {
			request.Etcd.TLSDir = agent.EtcdTLSDir
			mounts = append(mounts, agent.Mount{Name: operatorVolume, Secret: secret, Path: agent.EtcdTLSDir, ReadOnly: true})
		}
	}
	args, err := request.Args(agent.CommandFetch)
	if err != nil {
		return nil, fmt.Errorf("init container %s: %w", InitFetch, err)
	}
	container := initContainer(c, InitFetch, image, append([]string{agent.Program}, args...)...)
	if place := r.Source.Backup; place != nil {
		addEnv(&container, place.DeepCopy().Env)
	}
	for _, m := range mounts {
		m.ReadOnly = true
		pod.Spec.Volumes = append(pod.Spec.Volumes, mountedVolume(m))
		if m.PVC != "" {
			joinBackupGroup(pod.Spec.SecurityContext)
		}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.Path, ReadOnly: m.ReadOnly})
	}
	return &container, nil
}

// mountedVolume is a secret or a PVC for the agent. A pod whose secret is missing would never start and
// never say why; so it starts, and the agent says which file it misses.
func mountedVolume(m agent.Mount) corev1.Volume {
	v := corev1.Volume{Name: m.Name}
	if m.PVC != "" {
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.PVC, ReadOnly: m.ReadOnly}
	} else {
		// Root writes the files; the agent reads them through the group of the pod.
		v.Secret = &corev1.SecretVolumeSource{SecretName: m.Secret, DefaultMode: ptr.To[int32](0o440), Optional: ptr.To(true)}
	}
	return v
}

func initContainer(c *v1beta2.EtcdCluster, name, image string, command ...string) corev1.Container {
	own := podPolicy(c).DeepCopy()
	container := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: own.ImagePullPolicy, Command: command, Resources: own.Resources,
		VolumeMounts:             []corev1.VolumeMount{{Name: agentVolume, MountPath: agentDir}},
		SecurityContext:          containerSecurityContext(own),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if container.ImagePullPolicy == "" {
		container.ImagePullPolicy = corev1.PullIfNotPresent
	}
	return container
}

// hide takes an object of a member from behind the services, as the recovery member.
func hide(labels *map[string]string, cluster string) {
	moveLabel(labels, LabelCluster, LabelRecovery, cluster)
}

// RecoveryLabels returns the labels that the pod and the PVC of a hidden recovery member carry.
func RecoveryLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	hide(&labels, cluster)
	return labels
}

// IsHidden is true for the recovery member, and its PVC, until it is published to clients.
func IsHidden(labels map[string]string, cluster string) bool {
	return labels[LabelRecovery] == cluster && labels[LabelCluster] == ""
}

// IsPublished puts the recovery member behind the Services, and says whether that is a
// change.
func IsPublished(labels *map[string]string, cluster string) bool {
	return moveLabel(labels, LabelRecovery, LabelCluster, cluster)
}

// IsFenced takes an object of an old member from behind the Services permanently, and says
// whether that is a change.
func IsFenced(labels *map[string]string, cluster string) bool {
	return moveLabel(labels, LabelCluster, LabelFenced, cluster)
}

func moveLabel(labels *map[string]string, from, to, cluster string) bool {
	_, had := (*labels)[from]
	if !had && (*labels)[to] == cluster {
		return false
	}
	moved := merged(*labels, map[string]string{to: cluster})
	delete(moved, from)
	*labels = moved
	return true
}
