// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// DefaultRepository is what the original etcd-operator had; old manifests rely on it.
const DefaultRepository = "quay.io/coreos/etcd"

// DefaultVersion is the version of etcd that this release recommends. The API server
// writes it into an EtcdCluster that is created without a version. It is not a decoding
// default: those apply whenever an object is read, and would change the version of an
// existing cluster with an update of the program.
const DefaultVersion = "3.6.16"

// Bounds and default of recovery.memberLossTimeoutSeconds.
const (
	// DefaultMemberLossTimeoutSeconds is how long Kubernetes leaves pods on a node that does not
	// respond, unless their tolerations say something else.
	DefaultMemberLossTimeoutSeconds = 300
	// MinMemberLossTimeoutSeconds is longer than Kubernetes takes to notice that a node does not
	// respond, and than a member takes to restart.
	MinMemberLossTimeoutSeconds = 60
	// MaxMemberLossTimeoutSeconds is the most that a field of Kubernetes for seconds holds.
	MaxMemberLossTimeoutSeconds = 1 << 31
)

// SetDefaults_ClusterSpec fills what an old manifest may leave out.
func SetDefaults_ClusterSpec(spec *ClusterSpec) {
	if spec.Repository == "" {
		spec.Repository = DefaultRepository
	}
	if spec.PodDisruptionBudget == "" {
		spec.PodDisruptionBudget = PodDisruptionBudgetEnabled
	}
}

// SetDefaults_PersistentVolumeClaimRetentionPolicy keeps what users know: volumes
// go with their members and with the cluster.
func SetDefaults_PersistentVolumeClaimRetentionPolicy(policy *PersistentVolumeClaimRetentionPolicy) {
	if policy.WhenDeleted == "" {
		policy.WhenDeleted = PVCDelete
	}
	if policy.WhenScaled == "" {
		policy.WhenScaled = PVCDelete
	}
}

// SetDefaults_RecoveryPolicy leaves a lost quorum to a person, and a lost member to the controller.
// The default of memberLossTimeoutSeconds depends on the tolerations: see MemberLossTimeout.
func SetDefaults_RecoveryPolicy(policy *RecoveryPolicy) {
	if policy.QuorumLoss == "" {
		policy.QuorumLoss = RecoveryManual
	}
	if policy.MemberLoss == "" {
		policy.MemberLoss = RecoveryAutomatic
	}
}

// SetDefaults_IssuerReference follows cert-manager's own defaults.
func SetDefaults_IssuerReference(ref *IssuerReference) {
	if ref.Kind == "" {
		ref.Kind = "Issuer"
	}
	if ref.Group == "" {
		ref.Group = "cert-manager.io"
	}
}

// SetDefaults_ClusterBackupPolicy says how a backup is stored and proved.
func SetDefaults_ClusterBackupPolicy(policy *ClusterBackupPolicy) {
	if policy.Compression == "" {
		policy.Compression = CompressionZstd
	}
	if policy.Verify == "" {
		policy.Verify = defaultVerification(policy.StorageType, &policy.BackupSource)
	}
}

// SetDefaults_BackupSpec says how a backup is stored and proved. A backup of etcdEndpoints
// stays the plain file that it always was, since its users may read it with their own tools,
// and is read back as before.
func SetDefaults_BackupSpec(spec *BackupSpec) {
	compression, verify := CompressionNone, VerificationHash
	if spec.EtcdCluster != nil {
		compression, verify = CompressionZstd, defaultVerification(spec.StorageType, &spec.BackupSource)
	}
	if spec.Compression == "" {
		spec.Compression = compression
	}
	if spec.Verify == "" {
		spec.Verify = verify
	}
}

// defaultVerification believes the checksums of the stores that clouds run. What any other
// store has is read.
func defaultVerification(storageType BackupStorageType, source *BackupSource) Verification {
	if isCloud(storageType, source) {
		return VerificationChecksum
	}
	return VerificationHash
}

// SetDefaults_OSSSource fills the documented default endpoint.
func SetDefaults_OSSSource(source *OSSSource) {
	if source.Endpoint == "" {
		source.Endpoint = "https://oss-cn-hangzhou.aliyuncs.com"
	}
}
