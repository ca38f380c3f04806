// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	findPod            = "`kubectl describe pod` of the pod that the message names shows its events, such as a volume that cannot be mounted. Remove the cause."
	findRecoveryMember = "`kubectl describe pod` of the recovery member that the message names shows its events, and `kubectl logs --all-containers` what fills it and what etcd does. Remove the cause."
	findMember         = "`kubectl logs` of the pod that the message names shows what etcd does. Remove the cause. Another member replaces a voter that has joined with `kubectl etcd replace`."
	saveDoomed         = "Store the data with `kubectl etcd snapshot save NAME FILE`. Then set spec.size again, and have other members replace these with `kubectl etcd replace`."
	fixSecret          = "Correct the Secret that the message names."
	fixSpec            = "Correct what the message names in the spec."
)

// Waits has a row for every reason for which an EtcdCluster waits.
var Waits = waits.Table{
	string(ReasonBackupEncrypted):           waits.New("the identities that decrypt the last backup", waits.User, waits.Soon, "Restore it with an EtcdRestore that sets spec.decryption."),
	string(ReasonBackupNotVerified):         waits.New("a backup that was verified", waits.User, waits.Soon, "Restore a backup with an EtcdRestore."),
	string(ReasonClusterIDMismatch):         waits.New("members that respond with the recorded cluster ID", waits.User, waits.Soon, "Find out which process responds at the addresses of the members."),
	string(ReasonClusterVersionUndecided):   waits.New("the cluster version of etcd", waits.Etcd, waits.Late, findMember),
	string(ReasonContainerCrashes):          waits.New("a container that ends again and again", waits.User, waits.Late, findMember),
	string(ReasonContainerNotCreated):       waits.New("a container that Kubernetes cannot create", waits.User, waits.Soon, findPod),
	string(ReasonDataCorrupt):               waits.New("the end of the alarm CORRUPT", waits.User, waits.Soon, "Find the member that differs as docs/how-to/corrupt-member.md says. After its replacement disarm the alarm with `etcdctl alarm disarm`."),
	string(ReasonDesiredSizeZero):           waits.New("a size above 0", waits.User, waits.Soon, "Set spec.size."),
	string(ReasonEtcdDenied):                waits.New("the permission to act in etcd", waits.User, waits.Soon, "Grant the certificate of the controller the role root, or switch authorization off."),
	string(ReasonEtcdUnhealthy):             waits.New("etcd, which changes its members when all are connected", waits.Etcd, waits.Late, "Bring back the members that do not serve."),
	string(ReasonEtcdUnreachable):           waits.New("a response of a quorum", waits.User, waits.Late, "Check the network between the controller and the pods."),
	string(ReasonExistingEtcdUnreachable):   waits.New("the etcd in spec.bootstrap.existing", waits.User, waits.Soon, "Bring it back, or correct clientEndpoints and tlsSecret."),
	string(ReasonExistingEtcdUnsuitable):    waits.New("an etcd that members of this cluster can join", waits.User, waits.Soon, "Change what the message names in that etcd."),
	string(ReasonForbidden):                 waits.New("a permission in Kubernetes", waits.User, waits.Soon, "Give the controller the permission that the message names."),
	string(ReasonImageNotPulled):            waits.New("an image that Kubernetes can pull", waits.User, waits.Soon, "Set spec.version, spec.repository or spec.pod.imagePullSecrets so that the nodes can pull the image."),
	string(ReasonImageRewritten):            waits.New("the end of changes to the images of the pods", waits.User, waits.Soon, "Exclude the pods of the cluster from the program that sets their image, then restart the members with `kubectl etcd restart`. Or name that image with spec.repository and spec.imageDigest."),
	string(ReasonImageVersion):              waits.New("an image that holds the declared version", waits.User, waits.Soon, "Set spec.version, spec.repository or spec.imageDigest."),
	string(ReasonLastBackupDataDiffers):     waits.New("a user who knows which backup has the right data", waits.User, waits.Soon, "Restore a backup with an EtcdRestore that names it."),
	string(ReasonLearnerCatchingUp):         waits.Copy("the next entry of the log that a learner reads", waits.Etcd, learnerPatience, "No user has to act for this member: another member replaces it. Check the network and the disks of the nodes."),
	string(ReasonMemberListTooLarge):        waits.New("a member list that the controller can read", waits.User, waits.Soon, "Remove the members and URLs that the message names from etcd, or the program that responds in its place."),
	string(ReasonNameConflict):              waits.New("a name that an object of another owner has", waits.User, waits.Soon, "Save the data of members of an earlier cluster that still serve. Then delete the object that the message names, or give the cluster another name. On an object that is protected from deletion, an administrator removes the label first that protects it."),
	string(ReasonNamespaceTerminating):      waits.New("nothing: the namespace is being deleted", waits.User, waits.Soon, "Copy the data to your machine with kubectl etcd snapshot save, and restore it into another namespace."),
	string(ReasonNoBackup):                  waits.New("a backup", waits.User, waits.Soon, "Restore a backup with an EtcdRestore."),
	string(ReasonRestoreCutover):            waits.New("the recovery member, which a restore has published to clients", waits.Kubernetes, waits.Late, findRecoveryMember),
	string(ReasonNoLeader):                  waits.New("the election of a leader", waits.Etcd, waits.Late, "Check the network between the members, and the disks of their nodes."),
	string(ReasonNoOtherNode):               waits.New("a node that takes the successor of a member on a cordoned node", waits.Kubernetes, waits.Late, "Uncordon the node that the message names, or add a node that can take the pod."),
	string(ReasonOldMembersKept):            waits.New("spec.bootstrap.existing.oldMembers=Remove", waits.User, waits.Late, "Connect all applications to this cluster, then set spec.bootstrap.existing.oldMembers=Remove."),
	string(ReasonOldPods):                   waits.New("the end of pods of a deleted cluster", waits.Kubernetes, waits.Soon, "Save the data of that pod if nothing else has it. Then delete the pod, if its cluster no longer exists."),
	string(ReasonPodFailed):                 waits.New("a pod that does not fail before its containers start", waits.User, waits.Soon, "Remove the cause that the message names, such as too little room on the nodes."),
	string(ReasonPodUnschedulable):          waits.New("a node that takes the pod", waits.Kubernetes, waits.Late, "Add a node, free resources, or change spec.pod so that a node fits. The message says what the scheduler found."),
	string(ReasonPreparingLog):              waits.Copy("a snapshot of each member behind old log entries", waits.Etcd, waits.Transfer, "Bring back the members that do not serve."),
	string(ReasonQuorumAtRisk):              waits.New("members that serve", waits.Kubernetes, waits.Late, serveAgain),
	string(ReasonQuorumLost):                waits.New("enough members for a quorum", waits.Kubernetes, waits.Late, "Bring back the members that the message names, or recover the cluster with `kubectl etcd recover`."),
	string(ReasonRestoreEnded):              waits.New("an EtcdRestore", waits.User, waits.Soon, "Restore a backup with another EtcdRestore."),
	string(ReasonRestoreNotFound):           waits.New("an EtcdRestore of this cluster", waits.User, waits.Soon, "Create that EtcdRestore, or remove the annotation "+v1beta2.AnnotationRestore+"."),
	string(ReasonSourceLost):                waits.New("a member that a recovery can copy", waits.User, waits.Soon, "Bring another member back, or abandon the recovery as the message says."),
	string(ReasonStaleObservation):          waits.New("an observation that Kubernetes and etcd confirm", waits.Controller, waits.Soon, "Correct the object that the message names, or restart the controller."),
	string(ReasonTooManyTakeOvers):          waits.New("one of the take-overs that run", waits.User, waits.Transfer, "End a take-over of the namespace: remove its old members, or delete an EtcdCluster whose spec.bootstrap.existing does not respond."),
	string(ReasonTooManyDefragmentations):   waits.New("one of the defragmentations that run", waits.Controller, waits.Transfer, "Find out why the defragmentations do not end."),
	string(ReasonUnmanagedMember):           waits.New("the removal of a member that the controller did not add", waits.User, waits.Soon, "Remove that member with etcdctl member remove."),
	string(ReasonVersionStep):               waits.New("a version that etcd can reach in one step", waits.User, waits.Soon, "Set spec.version as the message says."),
	string(ReasonVolumesBeingDeleted):       waits.New("members on other PVCs than those that are being deleted", waits.User, waits.Soon, saveDoomed),
	string(ReasonVolumesFound):              waits.New("a decision about the PVCs of an earlier cluster", waits.User, waits.Soon, "Set spec.bootstrap.fromVolumes={} to take them back, or remove the labels etcd_cluster and etcd_recovery to begin empty beside them. On PVCs that are protected from deletion, an administrator does that."),
	string(ReasonVolumesNotFound):           waits.New("PVCs of an earlier cluster", waits.User, waits.Soon, "Bring the PVCs back, or remove spec.bootstrap.fromVolumes to begin empty."),
	string(ReasonWaitingForBootstrapMember): waits.New("the bootstrap member", waits.Kubernetes, waits.Late, findPod),
	string(ReasonWaitingForMember):          waits.New("a member that joins or restarts", waits.Etcd, waits.Late, findMember),
	string(ReasonWaitingForPod):             waits.New("a pod that starts or ends", waits.Kubernetes, waits.Late, findPod),
	string(ReasonWaitingForReady):           waits.New("the kubelet, which reports a pod ready", waits.Kubernetes, waits.Late, findPod),
	string(ReasonWaitingForRecoveryMember):  waits.Copy("the recovery member, in each phase of the recovery", waits.Kubernetes, waits.Transfer, findRecoveryMember),
	string(ReasonWaitingForRestore):         waits.New("an EtcdRestore that fills the cluster, until that is Stalled", waits.Controller, waits.Transfer, "Find the cause in the status of that EtcdRestore."),
	string(ReasonWaitingForService):         waits.New("the EndpointSlices of the client Service", waits.Kubernetes, waits.Late, "Find out why Kubernetes does not update them: its controller manager may not run."),
	string(ReasonWaitingForSurvivor):        waits.New("a member that responds and holds the data", waits.Kubernetes, waits.Late, "Bring a member back, or restore a backup with an EtcdRestore."),

	v1beta2.ReasonOldMemberMayRun:        waits.New("the proof that an old member has ended", waits.User, waits.Late, "Bring the node of that member back, or confirm that the node is off."),
	v1beta2.ReasonPreRestoreBackupTooOld: waits.New("a pre-restore backup that has the writes made while the recovery member was filled", waits.Controller, waits.Transfer, "Find the cause in the status of that EtcdRestore."),
	v1beta2.ReasonPodRejected:            waits.New("a pod or PVC that Kubernetes accepts", waits.User, waits.Soon, "Raise the quota or change the policy that the message names."),

	certificates.ReasonCANotTrusted:           waits.New("members that trust the CA of the present certificates", waits.User, waits.Soon, "Put the certificates back that all members accept, as the message says."),
	certificates.ReasonCertManagerMissing:     waits.New("cert-manager", waits.User, waits.Soon, "Install cert-manager, or change spec.TLS."),
	certificates.ReasonCertificateExpired:     waits.New("a certificate that is valid", waits.User, waits.Soon, fixSecret),
	certificates.ReasonCertificateNotYetValid: waits.New("the time from which a certificate is valid", waits.User, waits.Late, "Correct the clocks, or the Secret that the message names."),
	certificates.ReasonCertificateUnusable:    waits.New("a certificate that can be used", waits.User, waits.Soon, fixSecret),
	certificates.ReasonPeerCertificateLost:    waits.New("the CA and the certificate of the peers, which were lost together", waits.User, waits.Soon, "Restore the Secret of the peers from a backup of Secrets. Without one, restore a backup of the cluster into a new cluster, as the message says."),
	certificates.ReasonSecretIncomplete:       waits.New("an entry of a Secret", waits.User, waits.Soon, fixSecret),
	certificates.ReasonSecretMissing:          waits.New("a Secret", waits.User, waits.Soon, "Create the Secret that the message names."),
	certificates.ReasonTrustPending:           waits.New("members that trust the present CA", waits.Controller, waits.Late, findMember),
	certificates.ReasonSecretUnreadable:       waits.New("a Secret that can be read", waits.Kubernetes, waits.Late, "Give the controller the right to read the Secret that the message names."),
}

// rowOf returns the row of a reason. A reason of no row is one that an older controller wrote.
func rowOf(reason Reason) waits.Row {
	if row, found := Waits[string(reason)]; found {
		return row
	}
	return waits.Row{EndedBy: waits.User, Bound: waits.Late, Remedy: fixSpec}
}

// oneWait lists reasons between which one wait alternates. A container that ends again and again runs in
// between, and a quorum that does not respond has a leader now and then. The bound counts from the first of
// them: otherwise a wait that never ends would never be Stalled. All of them have the same bound.
var oneWait = []struct{ reasons, between []Reason }{
	{[]Reason{ReasonContainerCrashes}, []Reason{ReasonWaitingForBootstrapMember, ReasonWaitingForMember, ReasonWaitingForPod}},
	{[]Reason{ReasonQuorumLost, ReasonEtcdUnreachable, ReasonNoLeader}, nil},
}

// isOneWait is true for two reasons of the same wait.
func isOneWait(before, after Reason) bool {
	for _, w := range oneWait {
		is, was := slices.Contains(w.reasons, after), slices.Contains(w.reasons, before)
		if is && was || is && slices.Contains(w.between, before) || was && slices.Contains(w.between, after) {
			return true
		}
	}
	return before == after
}

// rowNeedsUser is true for a plan that waits for what only a user changes: that comes before other remedies.
func rowNeedsUser(plan Plan) bool {
	return plan.Wait != nil && rowOf(plan.Wait.Reason).EndedBy == waits.User
}

// waitedFor is how long the plan has waited for the same thing, or since a copy was last seen to advance.
func waitedFor(o *Observed, plan Plan) time.Duration {
	if j := joiningStatus(o); plan.Wait.Reason == ReasonLearnerCatchingUp && j != nil {
		return o.Now.Sub(j.ProgressTime.Time)
	}
	return o.Now.Sub(waitingSince(o, plan.Wait.Reason).Time)
}

// waitingSince is since when the same thing has been waited for. A recovery that reaches its cutover has filled its
// member, so that the wait begins again. One that begins again with another member has not advanced.
func waitingSince(o *Observed, reason Reason) metav1.Time {
	is, was := o.Record.Recovery, o.Cluster.Status.Recovery
	if reason == ReasonWaitingForRecoveryMember && is != nil && was != nil && is.ID == was.ID &&
		is.Phase == v1beta2.RecoveryPhaseCutover && was.Phase == v1beta2.RecoveryPhaseFilling {
		return blockedSince(o.Now, nil, reason)
	}
	return blockedSince(o.Now, o.Cluster.Status.BlockedBy, reason)
}

// awaitedRestore returns what the EtcdRestore says that the plan waits for; nil if it has not said anything.
func awaitedRestore(o *Observed, plan Plan) *v1beta2.RestoreStatus {
	status := o.LossRestore
	if status == nil && o.AwaitedRestore != nil {
		status = &o.AwaitedRestore.Status
	}
	if status == nil {
		status = o.RecoveryRestore
	}
	if plan.Wait.Reason != ReasonWaitingForRestore || status == nil || meta.FindStatusCondition(status.Conditions, v1beta2.ConditionReady) == nil {
		return nil
	}
	return status
}

// copiedSize is the size of the largest database that the wait may be for. No member that is lost tells the size of its
// database, and no recovery gets a larger one than the cluster has room for.
func copiedSize(o *Observed, plan Plan) int64 {
	size := largestDatabase(o.Etcd.Members)
	if plan.Wait.Reason == ReasonWaitingForRecoveryMember {
		size = max(size, resources.RestoreTargetOf(o.Cluster).MaxSize)
	}
	return size
}

// waitsTooLong is true once the plan has waited for the same thing for so long that it
// will probably not come without a person.
func waitsTooLong(o *Observed, plan Plan) bool {
	if r := awaitedRestore(o, plan); r != nil {
		return meta.IsStatusConditionTrue(r.Conditions, v1beta2.ConditionStalled) // it knows what has advanced
	}
	bound := rowOf(plan.Wait.Reason).Patience(copiedSize(o, plan))
	if plan.Rule == RuleQuorum && diagnoseQuorumLoss(o).Permanent && !recoversAutomatically(o.Cluster) {
		bound = waits.Soon
	}
	return waitedFor(o, plan) >= bound
}
