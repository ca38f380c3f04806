// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// followReplacement reads from the member list how a replacement goes. Here nothing is
// decided.
func followReplacement(o *Observed, op *v1beta2.ClusterOperation) {
	if o.Cluster.Spec.Paused || o.Cluster.DeletionTimestamp != nil {
		return
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, timestamp(o.Now)
	}
	if desiredSize(o.Cluster) == 0 {
		endReplacement(o.Now, op, "the cluster is hibernated; send the request again when it has members")
		return
	}
	if o.Etcd.Linearizable {
		// Members that another program runs do not count: the size is that of the cluster.
		own, voters := listOwn(o.Etcd.Members), listOwnVoters(o.Etcd.Members)
		if left := noteReplaced(o.Etcd.Members, op); len(left) == 0 && len(voters) == desiredSize(o.Cluster) && len(own) == desiredSize(o.Cluster) {
			op.Phase, op.Message, op.CompletionTime = v1beta2.OperationSucceeded, "", timestamp(o.Now)
			return
		}
	}
	if patience := patienceForCopies(o, len(op.Members)); o.Now.Sub(op.StartTime.Time) > patience {
		endReplacement(o.Now, op, fmt.Sprintf("the replacement is not complete after %s", patience))
	}
}

// noteReplaced records the members that are members no more, and returns the others.
func noteReplaced(members []Member, op *v1beta2.ClusterOperation) []string {
	var left []string
	for _, name := range op.Members {
		switch {
		case memberByName(members, name) != nil:
			left = append(left, name)
		case op.Result(name) == nil:
			op.Results = append(op.Results, v1beta2.OperationResult{Member: name, State: v1beta2.OperationSucceeded})
		}
	}
	return left
}

// endReplacement closes a replacement that is not complete, and names the members that stay.
func endReplacement(now time.Time, op *v1beta2.ClusterOperation, why string) {
	var stay []string
	for _, name := range op.Members {
		if r := op.Result(name); r == nil || r.State != v1beta2.OperationSucceeded {
			stay = append(stay, name)
		}
	}
	if len(stay) > 0 {
		why += "; these members stay: " + strings.Join(stay, ", ")
	}
	op.Phase, op.Message, op.CompletionTime = v1beta2.OperationFailed, why, timestamp(now)
}
