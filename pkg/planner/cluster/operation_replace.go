// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// replaceRequested is true for a voter that a user has asked to replace. The rules about the
// membership do it, one voter at a time: scale-up adds another member, and scale-down removes
// the named member when the other votes.
func (o *Observed) replaceRequested(m *Member) bool {
	op := o.Cluster.Status.Operation
	return !m.Learner && !op.Over() && op.Type == v1beta2.OperationReplace && slices.Contains(op.Members, m.Name) &&
		o.Cluster.Annotations[resources.AnnotationCancelOperation] != op.ID
}

// followReplacement reads from the member list how a replacement goes. Here nothing is
// decided.
func (o *Observed) followReplacement(op *v1beta2.ClusterOperation) {
	if o.Cluster.Spec.Paused || o.Cluster.DeletionTimestamp != nil {
		return
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, o.stampNow()
	}
	if o.size() == 0 {
		o.endReplacement(op, "the cluster is hibernated; send the request again when it has members")
		return
	}
	if o.Etcd.Linearizable {
		if left := o.noteReplaced(op); len(left) == 0 && len(o.voters()) == o.size() && len(o.Etcd.Members) == o.size() {
			op.Phase, op.Message, op.CompletionTime = v1beta2.OperationSucceeded, "", o.stampNow()
			return
		}
	}
	if o.Now.Sub(op.StartTime.Time) > operationPatience {
		o.endReplacement(op, fmt.Sprintf("the replacement is not complete after %s", operationPatience))
	}
}

// noteReplaced records the members that are members no more, and returns the others.
func (o *Observed) noteReplaced(op *v1beta2.ClusterOperation) []string {
	var left []string
	for _, name := range op.Members {
		switch {
		case o.member(name) != nil:
			left = append(left, name)
		case op.Result(name) == nil:
			op.Results = append(op.Results, v1beta2.OperationResult{Member: name, State: v1beta2.OperationSucceeded})
		}
	}
	return left
}

// endReplacement closes a replacement that is not complete, and names the members that stay.
func (o *Observed) endReplacement(op *v1beta2.ClusterOperation, why string) {
	var stay []string
	for _, name := range op.Members {
		if r := op.Result(name); r == nil || r.State != v1beta2.OperationSucceeded {
			stay = append(stay, name)
		}
	}
	if len(stay) > 0 {
		why += "; these members stay: " + strings.Join(stay, ", ")
	}
	op.Phase, op.Message, op.CompletionTime = v1beta2.OperationFailed, why, o.stampNow()
}
