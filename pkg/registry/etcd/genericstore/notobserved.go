// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// MessageNotObserved is the message of the condition Ready in a new object.
const MessageNotObserved = "No controller has observed this object yet. If this persists, check that a controller runs and that its flags --namespace and --cluster-wide select this object."

// NotObservedConditions returns the conditions of a new object. Many clients treat an object
// without the condition Ready as ready.
func NotObservedConditions(created metav1.Time) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1beta2.ConditionReady, Status: metav1.ConditionUnknown, LastTransitionTime: created,
		Reason: v1beta2.ReasonNotObserved, Message: MessageNotObserved,
	}}
}
