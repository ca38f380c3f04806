// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=GetHealth,verb=get,subresource=health,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterHealth
// +genclient:method=GetMembers,verb=get,subresource=members,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterMembers
// +genclient:method=MoveLeader,verb=create,subresource=moveleader,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterLeaderMove,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterLeaderMove
// +genclient:method=Defrag,verb=create,subresource=defrag,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation
// +genclient:method=Restart,verb=create,subresource=restart,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation
// +genclient:method=Replace,verb=create,subresource=replace,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterOperation
// +genclient:method=Backup,verb=create,subresource=backup,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdBackup,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdBackup
// +genclient:method=Restore,verb=create,subresource=restore,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdRestore,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdRestore
// +genclient:method=Recover,verb=create,subresource=recover,input=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterRecovery,result=github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2.EtcdClusterRecovery
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdCluster is one etcd cluster: its members run as pods of the object's
// namespace and are kept at the desired size and version.
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the desired state of the cluster.
	Spec ClusterSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// status is what the controller last observed. It is read only for users.
	// +optional
	Status ClusterStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterList is a list of EtcdClusters.
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of clusters.
	Items []EtcdCluster `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ClusterSpec is the desired state of an EtcdCluster.
type ClusterSpec struct {
	// size is the number of voting members, 1 to 7. Odd sizes are recommended: an
	// even size tolerates no more failures than the odd one below it. 0 hibernates
	// the cluster: its pods go and its volumes stay; it is allowed only where every
	// member has a volume.
	Replicas *int32 `json:"size,omitempty" protobuf:"varint,1,opt,name=size"`

	// repository is the image repository of etcd. The image that runs is
	// <repository>:v<version>. Default: quay.io/coreos/etcd.
	Repository string `json:"repository,omitempty" protobuf:"bytes,2,opt,name=repository"`

	// version is the desired version of etcd, such as "3.6.16";
	// a leading "v" is ignored. Default: the version that the API server recommends
	// when the cluster is created. It is stored then and does not change by itself; an
	// update without a version keeps the stored one. In an EtcdRestore's clusterTemplate
	// the default is the version that the backup is of.
	Version string `json:"version,omitempty" protobuf:"bytes,3,opt,name=version"`

	// paused stops the controller's actions on this cluster while true. Only the status,
	// deletion protection and certificates that are about to expire or were lost are kept up to date.
	// +optional
	Paused bool `json:"paused" protobuf:"varint,4,opt,name=paused"`

	// pod says how the members' pods look.
	Pod *PodPolicy `json:"pod,omitempty" protobuf:"bytes,5,opt,name=pod"`

	// TLS says where the cluster's certificates come from. Without it etcd speaks
	// plain HTTP.
	TLS *TLSPolicy `json:"TLS,omitempty" protobuf:"bytes,6,opt,name=TLS"`

	// etcd holds typed options of the etcd process.
	Etcd *EtcdOptions `json:"etcd,omitempty" protobuf:"bytes,7,opt,name=etcd"`

	// services adjusts the services of the cluster.
	Services *ServicesPolicy `json:"services,omitempty" protobuf:"bytes,8,opt,name=services"`

	// podDisruptionBudget says whether a PodDisruptionBudget guards the quorum of
	// the voters against evictions: Enabled (default) or Disabled.
	PodDisruptionBudget PodDisruptionBudgetPolicy `json:"podDisruptionBudget,omitempty" protobuf:"bytes,9,opt,name=podDisruptionBudget,casttype=PodDisruptionBudgetPolicy"`

	// backup says where backups of this cluster go, and when they are made without
	// being requested.
	Backup *ClusterBackupPolicy `json:"backup,omitempty" protobuf:"bytes,10,opt,name=backup"`

	// recovery says what may happen without being queried when the cluster is lost.
	Recovery *RecoveryPolicy `json:"recovery,omitempty" protobuf:"bytes,11,opt,name=recovery"`

	// deletionProtection, while true, has the API server reject the deletion of this object. Only
	// false lifts it: an update that leaves the field out, removes it or sets it to null keeps the
	// stored value. Default: false.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty" protobuf:"varint,12,opt,name=deletionProtection"`

	// imageDigest is the digest of the image of spec.version, such as
	// "sha256:" and 64 hexadecimal digits. The image that runs is then
	// <repository>:v<version>@<imageDigest>, whatever the tag names later. Change it
	// together with version, or remove it. A change of imageDigest restarts the members
	// one by one, as a change of the repository does.
	// +optional
	ImageDigest string `json:"imageDigest,omitempty" protobuf:"bytes,13,opt,name=imageDigest"`

	// clients are the applications that use the cluster, at most 32. The controller keeps a
	// Secret of type servicebinding.io/etcd for each, with the endpoint and, with TLS.auto, a
	// client certificate of its own. It deletes the Secret when the client is removed. The
	// removal does not revoke the certificate. With TLS.certManager, and with static
	// certificates for clients, there may be none: the controller cannot sign certificates then.
	// +listType=map
	// +listMapKey=name
	// +optional
	Clients []ClusterClient `json:"clients,omitempty" protobuf:"bytes,14,rep,name=clients"`

	// bootstrap says how the cluster begins, if it does not begin empty: at most one of its
	// fields. After the cluster has begun it may be removed, and not be added.
	// +optional
	Bootstrap *BootstrapPolicy `json:"bootstrap,omitempty" protobuf:"bytes,15,opt,name=bootstrap"`

	// metadata is put on every object that the controller makes for the cluster.
	// +optional
	Metadata *ObjectsMetadata `json:"metadata,omitempty" protobuf:"bytes,16,opt,name=metadata"`
}

// BootstrapPolicy says how a cluster begins.
type BootstrapPolicy struct {
	// existing names a running etcd that another program runs. The members of this cluster
	// join that etcd, one by one, and its data becomes the data of this cluster.
	// +optional
	Existing *ExistingEtcd `json:"existing,omitempty" protobuf:"bytes,1,opt,name=existing"`
	// fromVolumes takes the PVCs of an earlier cluster of this name back, with their data: after
	// a backup tool has restored the namespace, or after a deletion with whenDeleted: Retain. The
	// members of that cluster start again on them. It has no fields, so write fromVolumes: {}.
	// It may be added until the cluster has begun.
	// +optional
	FromVolumes *FromVolumes `json:"fromVolumes,omitempty" protobuf:"bytes,2,opt,name=fromVolumes"`
}

// FromVolumes takes back the PVCs that carry the label etcd_cluster with the name of the cluster.
type FromVolumes struct{}

// ExistingEtcd is a running etcd that a cluster takes over.
type ExistingEtcd struct {
	// clientEndpoints are the client URLs of the members of the running etcd, all of them http
	// or all of them https, at most 16. They may change until the cluster has begun.
	// +listType=atomic
	ClientEndpoints []string `json:"clientEndpoints" protobuf:"bytes,1,rep,name=clientEndpoints"`
	// tlsSecret is the name of a Secret with the client certificate for https endpoints: tls.crt,
	// tls.key and ca.crt, or etcd-client.crt, etcd-client.key and etcd-client-ca.crt.
	// +optional
	TLSSecret string `json:"tlsSecret,omitempty" protobuf:"bytes,2,opt,name=tlsSecret"`
	// oldMembers: Keep or Remove. Keep leaves the old members in etcd. Remove requests their
	// removal: as soon as all members of this cluster vote and are healthy, the leadership moves
	// to one of them, and the old members are removed one by one. Default: Keep.
	// +optional
	OldMembers OldMembersPolicy `json:"oldMembers,omitempty" protobuf:"bytes,3,opt,name=oldMembers,casttype=OldMembersPolicy"`
}

// OldMembersPolicy says what happens to the members of a running etcd that a cluster takes over.
type OldMembersPolicy string

// Values of OldMembersPolicy.
const (
	// OldMembersKeep: they stay until their removal is requested.
	OldMembersKeep OldMembersPolicy = "Keep"
	// OldMembersRemove: they are removed from etcd once all members of the cluster vote.
	OldMembersRemove OldMembersPolicy = "Remove"
)

// PodDisruptionBudgetPolicy says whether a PodDisruptionBudget is kept.
type PodDisruptionBudgetPolicy string

// Values of PodDisruptionBudgetPolicy.
const (
	// PodDisruptionBudgetEnabled: evictions leave a quorum, and etcd keeps serving.
	PodDisruptionBudgetEnabled PodDisruptionBudgetPolicy = "Enabled"
	// PodDisruptionBudgetDisabled: evictions may end several members at once.
	PodDisruptionBudgetDisabled PodDisruptionBudgetPolicy = "Disabled"
)

// PodPolicy says how the members' pods look.
type PodPolicy struct {
	// labels are added to the pods. "app" and keys that begin with "etcd_" belong to
	// the controller and are rejected.
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,1,rep,name=labels"`

	// nodeSelector restricts the nodes on which members may run.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"bytes,2,rep,name=nodeSelector"`

	// affinity is the pods' affinity. It replaces the default soft anti-affinity.
	Affinity *corev1.Affinity `json:"affinity,omitempty" protobuf:"bytes,3,opt,name=affinity"`

	// antiAffinity, if true and affinity is not set, forbids two members of the
	// cluster on one node. Deprecated: use affinity or topologySpreadConstraints.
	AntiAffinity bool `json:"antiAffinity,omitempty" protobuf:"varint,4,opt,name=antiAffinity"`

	// resources of each container of the pods.
	Resources corev1.ResourceRequirements `json:"resources,omitempty" protobuf:"bytes,5,opt,name=resources"`

	// tolerations of the pods. The pods of members always tolerate, without a limit, the taints
	// node.kubernetes.io/unreachable and node.kubernetes.io/not-ready: Kubernetes would delete
	// members that serve behind a partition. A toleration of these taints with tolerationSeconds is
	// left out of the pods, and sets the default of spec.recovery.memberLossTimeoutSeconds.
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,6,rep,name=tolerations"`

	// etcdEnv is added to the environment of the etcd container.
	// +listType=atomic
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty" protobuf:"bytes,7,rep,name=etcdEnv"`

	// persistentVolumeClaimSpec, if set, gives each member a volume of its own that
	// outlives its pod. Without it a member's data lives and dies with its pod. Of a change,
	// PVCs that exist take more storage only. The condition VolumesAsDeclared names those whose
	// volumeAttributesClassName differs, and how to change it.
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty" protobuf:"bytes,8,opt,name=persistentVolumeClaimSpec"`

	// annotations are added to the pods. "etcd.version" belongs to the controller.
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,9,rep,name=annotations"`

	// busyboxImage is accepted and kept, and has no effect: no container needs it.
	BusyboxImage string `json:"busyboxImage,omitempty" protobuf:"bytes,10,opt,name=busyboxImage"`

	// securityContext of the pods. Fields that are not set keep the defaults that
	// the Pod Security Standard "restricted" asks for.
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty" protobuf:"bytes,11,opt,name=securityContext"`

	// DNSTimeoutInSecond is accepted and kept, and has no effect: nothing polls DNS.
	DNSTimeoutInSecond int64 `json:"DNSTimeoutInSecond,omitempty" protobuf:"varint,12,opt,name=DNSTimeoutInSecond"`

	// ClusterDomain is appended to the members' host names, such as
	// ".cluster.local". Default: empty, which every cluster resolves.
	// +optional
	ClusterDomain string `json:"ClusterDomain" protobuf:"bytes,13,opt,name=ClusterDomain"`

	// topologySpreadConstraints of the pods. They replace the default soft spread
	// over zones.
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty" protobuf:"bytes,14,rep,name=topologySpreadConstraints"`

	// priorityClassName of the pods.
	PriorityClassName string `json:"priorityClassName,omitempty" protobuf:"bytes,15,opt,name=priorityClassName"`

	// imagePullSecrets of the pods.
	// +listType=atomic
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"bytes,16,rep,name=imagePullSecrets"`

	// imagePullPolicy of each container of the pods. Default: IfNotPresent.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" protobuf:"bytes,17,opt,name=imagePullPolicy,casttype=k8s.io/api/core/v1.PullPolicy"`

	// terminationGracePeriodSeconds of the pods. Default: 30.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" protobuf:"varint,18,opt,name=terminationGracePeriodSeconds"`

	// containerSecurityContext of each container of the pods. Fields that are not
	// set keep the defaults that the Pod Security Standard "restricted" asks for.
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty" protobuf:"bytes,19,opt,name=containerSecurityContext"`

	// persistentVolumeClaimRetentionPolicy says what happens to the members' volumes
	// when the cluster is deleted and when it is scaled down.
	PersistentVolumeClaimRetentionPolicy *PersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty" protobuf:"bytes,20,opt,name=persistentVolumeClaimRetentionPolicy"`
}

// PersistentVolumeClaimRetentionPolicy says what happens to the PVCs of members
// that are no longer wanted.
type PersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted: Delete (default) or Retain the PVCs when the cluster is deleted.
	WhenDeleted PVCRetention `json:"whenDeleted,omitempty" protobuf:"bytes,1,opt,name=whenDeleted,casttype=PVCRetention"`
	// whenScaled: Delete (default) or Retain the PVC of a member that was removed
	// by scaling down.
	WhenScaled PVCRetention `json:"whenScaled,omitempty" protobuf:"bytes,2,opt,name=whenScaled,casttype=PVCRetention"`
}

// PVCRetention is what happens to a PVC that is no longer wanted.
type PVCRetention string

// Values of PVCRetention.
const (
	// PVCDelete deletes the PVC, and with it the data.
	PVCDelete PVCRetention = "Delete"
	// PVCRetain keeps the PVC. Delete it yourself when its data is not needed any more.
	PVCRetain PVCRetention = "Retain"
)

// EtcdOptions holds typed options of the etcd process.
type EtcdOptions struct {
	// quotaBackendBytes is the size at which etcd stops accepting writes, as a
	// quantity such as "8Gi". Default: etcd's own, 2Gi.
	QuotaBackendBytes *resource.Quantity `json:"quotaBackendBytes,omitempty" protobuf:"bytes,1,opt,name=quotaBackendBytes"`

	// autoCompaction lets etcd drop old revisions by itself.
	AutoCompaction *AutoCompaction `json:"autoCompaction,omitempty" protobuf:"bytes,2,opt,name=autoCompaction"`

	// snapshotCount is the number of committed transactions that trigger a raft
	// snapshot to disk. Default: etcd's own.
	SnapshotCount *int64 `json:"snapshotCount,omitempty" protobuf:"varint,3,opt,name=snapshotCount"`

	// heartbeatInterval between leader and followers. Default: etcd's own, 100ms.
	HeartbeatInterval *Duration `json:"heartbeatInterval,omitempty" protobuf:"bytes,4,opt,name=heartbeatInterval"`

	// electionTimeout after which a follower that hears nothing calls an election;
	// at least five times the heartbeat interval, at most 50s. Default: etcd's own, 1s.
	ElectionTimeout *Duration `json:"electionTimeout,omitempty" protobuf:"bytes,5,opt,name=electionTimeout"`

	// extraArgs are appended to etcd's command line, each of the form --flag=value.
	// Flags that the controller owns are rejected.
	// +listType=atomic
	ExtraArgs []string `json:"extraArgs,omitempty" protobuf:"bytes,6,rep,name=extraArgs"`
}

// AutoCompaction lets etcd drop old revisions by itself.
type AutoCompaction struct {
	// mode is Periodic (retention is a duration) or Revision (retention is a number
	// of revisions).
	Mode AutoCompactionMode `json:"mode" protobuf:"bytes,1,opt,name=mode,casttype=AutoCompactionMode"`
	// retention is how much history is kept: a duration such as "1h" or a number of
	// revisions such as "10000".
	Retention string `json:"retention" protobuf:"bytes,2,opt,name=retention"`
}

// AutoCompactionMode is how etcd measures the history that it keeps.
type AutoCompactionMode string

// Values of AutoCompactionMode.
const (
	// AutoCompactionPeriodic keeps the history of a duration.
	AutoCompactionPeriodic AutoCompactionMode = "Periodic"
	// AutoCompactionRevision keeps a number of revisions.
	AutoCompactionRevision AutoCompactionMode = "Revision"
)

// ServicesPolicy adjusts the services of the cluster.
type ServicesPolicy struct {
	// client is a template for the service <name>-client.
	Client *ServiceTemplate `json:"client,omitempty" protobuf:"bytes,1,opt,name=client"`
}

// ServiceTemplate is what a user may choose about a service.
type ServiceTemplate struct {
	// type of the service: ClusterIP (default), NodePort or LoadBalancer.
	Type corev1.ServiceType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=k8s.io/api/core/v1.ServiceType"`
	// annotations added to the service.
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,2,rep,name=annotations"`
	// labels added to the service. "app" and keys that begin with "etcd_" are rejected.
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,3,rep,name=labels"`
	// nodePort of the client port, for type NodePort or LoadBalancer.
	NodePort int32 `json:"nodePort,omitempty" protobuf:"varint,4,opt,name=nodePort"`
	// loadBalancerClass of a service of type LoadBalancer.
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty" protobuf:"bytes,5,opt,name=loadBalancerClass"`
	// loadBalancerSourceRanges restricts which addresses may reach a Service of type LoadBalancer.
	// +listType=atomic
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty" protobuf:"bytes,6,rep,name=loadBalancerSourceRanges"`
	// externalTrafficPolicy of a service of type NodePort or LoadBalancer.
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,7,opt,name=externalTrafficPolicy,casttype=k8s.io/api/core/v1.ServiceExternalTrafficPolicy"`
	// trafficDistribution of the service.
	TrafficDistribution *string `json:"trafficDistribution,omitempty" protobuf:"bytes,8,opt,name=trafficDistribution"`
	// ipFamilyPolicy of the service: SingleStack, PreferDualStack or RequireDualStack.
	IPFamilyPolicy *corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty" protobuf:"bytes,9,opt,name=ipFamilyPolicy,casttype=k8s.io/api/core/v1.IPFamilyPolicy"`
	// ipFamilies of the service, IPv4 or IPv6 or both, the one of clusterIP first; the
	// families of the Kubernetes cluster by default. Two take an ipFamilyPolicy other
	// than SingleStack. The first one of a service that exists cannot change: the
	// service keeps it, and condition ServiceAsDeclared says so, until it is deleted.
	// +listType=atomic
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty" protobuf:"bytes,10,rep,name=ipFamilies,casttype=k8s.io/api/core/v1.IPFamily"`
}

// RecoveryPolicy says what the controller may do about lost members without a request.
type RecoveryPolicy struct {
	// quorumLoss: Manual (default) or Automatic recovery when a quorum is permanently lost.
	QuorumLoss RecoveryMode `json:"quorumLoss,omitempty" protobuf:"bytes,1,opt,name=quorumLoss,casttype=RecoveryMode"`
	// memberLoss: Automatic (default) or Manual replacement of a member that does not respond
	// and cannot come back by itself. Its node does not respond, no node can take its pod and
	// volume, or its pod stays Terminating. A new member joins first. The PVC of the replaced
	// member is deleted unless spec.pod.persistentVolumeClaimRetentionPolicy retains it. No
	// member is replaced without a quorum.
	MemberLoss RecoveryMode `json:"memberLoss,omitempty" protobuf:"bytes,2,opt,name=memberLoss,casttype=RecoveryMode"`
	// memberLossTimeoutSeconds is how long such a member may stay away before it is replaced.
	// At least 60. Default: the shortest tolerationSeconds in spec.pod.tolerations for nodes
	// that do not respond, but at least 60; 300 without such a toleration.
	MemberLossTimeoutSeconds *int64 `json:"memberLossTimeoutSeconds,omitempty" protobuf:"varint,3,opt,name=memberLossTimeoutSeconds"`
}

// RecoveryMode says whether a user or the controller starts a recovery.
type RecoveryMode string

// Values of RecoveryMode.
const (
	// RecoveryManual: a user starts it.
	RecoveryManual RecoveryMode = "Manual"
	// RecoveryAutomatic: the controller starts it by itself.
	RecoveryAutomatic RecoveryMode = "Automatic"
)
