// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleRestartTogether deletes the pods of all members that reject the certificates that the others
// show now. Rule recreate-pods creates them again on their PVCs. It asks no quorum: members that
// reject each other lose it with their connections, and those that restarted one by one would be
// no quorum either.
func ruleRestartTogether(o *Observed) (Plan, bool) {
	var actions []Action
	for _, p := range certificateInput(o).RestartTogether() {
		// The pod of a recovery member that is hidden is none of o.Pods.
		if pod := podByName(o.Pods, p.Name); pod == nil || !isLastToKnow(o, pod) {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Why: DeleteDistrusting})
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}
