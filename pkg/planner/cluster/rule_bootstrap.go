// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleBootstrap starts the cluster with one bootstrap member, whose name the record and the
// UID of the cluster give. The client Service does not exist before etcd has responded, and both the record
// and the status say so. So no client can have written to a bootstrap member that is lost
// before. It is created again under the same name and token, and is the same member.
func ruleBootstrap(o *Observed) (Plan, bool) {
	if isBootstrapped(o) {
		return Plan{}, false
	}
	if takesOver(o.Cluster) {
		return beginWithExisting(o), true
	}
	if isBootstrapMemberServing(&o.Etcd, o.Pods, o.BootstrapName) {
		return Plan{Actions: []Action{RecordBootstrap{ClusterID: o.Etcd.ClusterID, Log: upgradePathOf(o).logOfNewCluster()}}, RequeueAfter: recheckWaiting}, true
	}
	if awaitsRestore(o.Cluster) {
		return awaitRestore(o), true
	}
	if desiredSize(o.Cluster) == 0 {
		return hibernateUnstarted(o), true
	}
	plan := startBootstrapMember(o)
	if podByName(o.Pods, o.BootstrapName) != nil {
		plan.Actions = append(plan.Actions, prepare(o)...)
	}
	return plan, true
}

// awaitRestore waits for the EtcdRestore whose data the cluster starts with. Only a person lets the cluster start
// without that data, also if the EtcdRestore will never bring it.
func awaitRestore(o *Observed) Plan {
	name, r := o.Cluster.Annotations[v1beta2.AnnotationRestore], o.AwaitedRestore
	message := "the cluster starts with the data of EtcdRestore " + name
	remedy := fmt.Sprintf("Create an EtcdRestore of this cluster. To start the cluster without data, remove its annotation %s.", v1beta2.AnnotationRestore)
	switch {
	case r == nil:
		return wait(recheckWaiting, ReasonRestoreNotFound, message+", which does not exist", remedy)
	case r.Spec.EtcdCluster.Name != o.Cluster.Name:
		return wait(recheckWaiting, ReasonRestoreNotFound, message+", which restores EtcdCluster "+r.Spec.EtcdCluster.Name, remedy)
	case r.Status.Phase == v1beta2.RestorePhaseSucceeded, r.Status.Phase == v1beta2.RestorePhaseFailed:
		return wait(recheckWaiting, ReasonRestoreEnded, fmt.Sprintf("%s, which has ended as %s and has not filled this cluster", message, r.Status.Phase), remedy)
	default:
		return wait(recheckWaiting, ReasonWaitingForRestore, message, noActionNeeded+" See the status of that EtcdRestore.")
	}
}

// hibernateUnstarted stops the start of a cluster whose size is 0 by now. A bootstrap member that has
// not responded keeps its PVC, and starts again on it.
func hibernateUnstarted(o *Observed) Plan {
	plan := wait(0, ReasonDesiredSizeZero, "spec.size is 0, and the cluster has not served yet", "Set spec.size.")
	plan.Actions = slices.Concat(deleteHibernated(o), dropPrepared(o.PreparedPVCs, o.Prepared, o.PreparedPVCs))
	return plan
}

// isBootstrapMemberServing is true if the bootstrap member responds and its pod stays.
func isBootstrapMemberServing(etcd *Etcd, pods []Pod, name string) bool {
	return etcd.Linearizable && memberByName(etcd.Members, name) != nil && !isGone(podByName(pods, name))
}

// bootstrapVersion returns the version that the bootstrap member starts with: the declared one,
// unless its PVC was created for an older minor version. That version may have left a log that
// the newer one cannot read. So it continues from there, and the rollout takes the step.
func bootstrapVersion(desired string, pvc *PVC) string {
	target, has := parse(desired), pvcVersion(pvc)
	if target == nil || has == nil || target.Minor() <= has.Minor() {
		return ""
	}
	return has.String()
}

func startBootstrapMember(o *Observed) Plan {
	name := o.BootstrapName
	pod, pinned := podByName(o.Pods, name), bootstrapVersion(o.Cluster.Spec.Version, pvcByName(o.PVCs, name))
	outdated := pod != nil && pod.Outdated
	next := noActionNeeded
	if pinned != "" {
		outdated = pod != nil && pod.Version != pinned
		next = fmt.Sprintf("%s Its PVC was created for %s, which must run before %s. If %[2]s does not start, set spec.version to another release of the same minor version.",
			noActionNeeded, pinned, o.Cluster.Spec.Version)
	}
	outdated = outdated || slices.ContainsFunc(certificateInput(o).RestartTogether(), func(p certificates.Pod) bool { return p.Name == name })
	switch {
	case pod == nil:
		var actions []Action
		if isPersistent(o.Cluster) && pvcByName(o.PVCs, name) == nil {
			actions = append(actions, CreatePVC{Name: name})
		}
		return Plan{Actions: append(actions, CreateBootstrapPod{Name: name, Version: pinned}), RequeueAfter: recheckWaiting}
	case !pod.Terminating && (pod.Finished || !pod.Running && (outdated || declarationOf(o).isStale(pod) || lacksImageOfPolicy(o.Now, pod, preparedPatience))):
		// It ended as a whole, it does not run as it was declared before, or a policy gave it an image that cannot be pulled.
		return Plan{Actions: []Action{DeletePod{Name: pod.Name, UID: pod.UID, Why: DeleteBootstrapPod}}, RequeueAfter: recheckWaiting}
	default:
		if again, is := repairBootstrapMember(o, pod, outdated); is {
			return Plan{Actions: []Action{again}, RequeueAfter: recheckWaiting}
		}
		if pod.Running && (outdated || declarationOf(o).isStale(pod)) {
			next += restartByPerson(o, pod)
		}
		plan := waitForPod(o.Cluster, pod, recheckWaiting, awaitBootstrapMember(o, pod, next))
		if isPersistent(o.Cluster) && pvcByName(o.PVCs, name) == nil && !pod.Running {
			// A user deleted the PVC before the pod could use it.
			plan.Actions = []Action{CreatePVC{Name: name}}
		}
		return plan
	}
}

// restartByPerson says what a person can do about a bootstrap member that runs, is not what is declared now, and that
// repairBootstrapMember does not restart.
func restartByPerson(o *Observed, pod *Pod) string {
	switch {
	case pvcByName(o.PVCs, pod.Name) == nil:
		return " The pod is not what is declared now, and its data goes with it. If no client has written to it, delete the pod."
	case lowersMinor(o, pod):
		return fmt.Sprintf(" Its data may be too new for %s: set spec.version to a release of the minor version of %s.", o.Cluster.Spec.Version, pod.Version)
	default:
		return ""
	}
}

// awaitBootstrapMember says why the bootstrap member does not respond. Only a person ends the wait for one
// that runs as it is declared and never responds, or whose deletion does not end: nothing proves that it is not a member.
func awaitBootstrapMember(o *Observed, pod *Pod, next string) Wait {
	w := Wait{ReasonWaitingForBootstrapMember, "the bootstrap member " + pod.Name + " does not respond yet", next}
	switch {
	case pod.Terminating && o.Now.Sub(pod.EndsBy) > recheckWaiting:
		w.Message += ": " + diagnosis.MissingEnd(pod.Name, pod.Node)
		w.Remedy = "Bring the node back. " + diagnosis.ConfirmNodeOff
	case pod.Running && !pod.Terminating:
		w.Message = "the bootstrap member " + pod.Name + " runs, and does not respond to the controller"
		if o.Etcd.Err != "" {
			w.Message += ": " + o.Etcd.Err
		}
		w.Remedy += fmt.Sprintf(" Look at its log with `kubectl logs %s -n %s`. If etcd serves there, let the controller reach TCP port %d of the pod: a NetworkPolicy or a mesh may reject it.",
			pod.Name, o.Cluster.Namespace, resources.ClientPort)
	}
	return w
}
