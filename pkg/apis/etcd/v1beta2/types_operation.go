// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationType is what is done to a cluster.
type OperationType string

// Values of OperationType.
const (
	// OperationDefrag gives unused space of the members' databases back.
	OperationDefrag OperationType = "Defrag"
	// OperationRestart restarts members one by one.
	OperationRestart OperationType = "Restart"
	// OperationReplace has other members join and vote, one by one, and removes the members
	// that the request names.
	OperationReplace OperationType = "Replace"
)

// OperationPhase is how far an operation is.
type OperationPhase string

// Values of OperationPhase.
const (
	// OperationPending: the request is recorded and no member was touched yet.
	OperationPending OperationPhase = "Pending"
	// OperationRunning: it is carried out, one member at a time.
	OperationRunning OperationPhase = "Running"
	// OperationSucceeded: it has ended on every member.
	OperationSucceeded OperationPhase = "Succeeded"
	// OperationFailed: it has ended, and the message says on which member and why.
	OperationFailed OperationPhase = "Failed"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterOperation asks for an operation that takes longer than a request. It is
// what is sent to a subresource of a cluster such as defrag, and what comes back; the
// operation itself then stands in the status of the cluster.
type EtcdClusterOperation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata: name and namespace are those of the cluster. If uid or resourceVersion
	// are set in a request, the cluster must have them.
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is requested.
	Spec OperationRequest `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// status is the operation as it stands in the status of the cluster.
	Status ClusterOperation `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// OperationRequest is what can be requested of an operation.
type OperationRequest struct {
	// members that the operation is about, by name. Empty: all; a replacement must name them.
	// +listType=atomic
	Members []string `json:"members,omitempty" protobuf:"bytes,1,rep,name=members"`
}

// ClusterOperation is an operation that was requested, and how it goes.
type ClusterOperation struct {
	// type: Defrag, Restart or Replace.
	Type OperationType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=OperationType"`
	// id tells this operation from all others.
	ID string `json:"id,omitempty" protobuf:"bytes,2,opt,name=id"`
	// requestedAt is when it was requested.
	RequestedAt metav1.Time `json:"requestedAt,omitempty" protobuf:"bytes,3,opt,name=requestedAt"`
	// requestedBy is the user who did.
	RequestedBy string `json:"requestedBy,omitempty" protobuf:"bytes,4,opt,name=requestedBy"`
	// members that it is about, by name. Empty: all.
	// +listType=atomic
	Members []string `json:"members,omitempty" protobuf:"bytes,5,rep,name=members"`
	// phase: Pending, Running, Succeeded or Failed.
	Phase OperationPhase `json:"phase,omitempty" protobuf:"bytes,6,opt,name=phase,casttype=OperationPhase"`
	// message says what it came to, or what it is at.
	Message string `json:"message,omitempty" protobuf:"bytes,7,opt,name=message"`
	// startTime is when the controller began.
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,8,opt,name=startTime"`
	// completionTime is when it was over.
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,9,opt,name=completionTime"`
	// results of the members, in the order in which they were begun.
	// +listType=map
	// +listMapKey=member
	Results []OperationResult `json:"results,omitempty" protobuf:"bytes,10,rep,name=results"`
}

// OperationResult is what an operation came to for one member.
type OperationResult struct {
	// member by name.
	Member string `json:"member" protobuf:"bytes,1,opt,name=member"`
	// state: Running, Succeeded or Failed.
	State OperationPhase `json:"state" protobuf:"bytes,2,opt,name=state,casttype=OperationPhase"`
	// dbSizeBefore is the size of its database file in bytes before.
	DBSizeBefore int64 `json:"dbSizeBefore,omitempty" protobuf:"varint,3,opt,name=dbSizeBefore"`
	// dbSizeAfter is the size of its database file in bytes afterwards.
	DBSizeAfter int64 `json:"dbSizeAfter,omitempty" protobuf:"varint,4,opt,name=dbSizeAfter"`
	// message says why it failed.
	Message string `json:"message,omitempty" protobuf:"bytes,5,opt,name=message"`
}

// IsOver is true if nothing is left to be done.
func (o *ClusterOperation) IsOver() bool {
	return o == nil || o.Phase == OperationSucceeded || o.Phase == OperationFailed
}

// Result returns what it came to for a member so far, or nil.
func (o *ClusterOperation) Result(member string) *OperationResult {
	for i := range o.Results {
		if o.Results[i].Member == member {
			return &o.Results[i]
		}
	}
	return nil
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterLeaderMove makes another member lead. It is what is sent to the
// subresource moveleader of a cluster, and what comes back when that member leads.
type EtcdClusterLeaderMove struct {
	metav1.TypeMeta `json:",inline"`
	// metadata: name and namespace are those of the cluster. If uid or resourceVersion
	// are set in a request, the cluster must have them.
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is requested.
	Spec LeaderMoveRequest `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// status is what happened.
	Status LeaderMoveStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// LeaderMoveRequest is what can be requested of a move.
type LeaderMoveRequest struct {
	// target is the name of the member that is to lead. Empty: the healthy follower
	// that is furthest ahead.
	Target string `json:"target,omitempty" protobuf:"bytes,1,opt,name=target"`
}

// LeaderMoveStatus is what happened.
type LeaderMoveStatus struct {
	// from is the name of the member that led before.
	From string `json:"from,omitempty" protobuf:"bytes,1,opt,name=from"`
	// leader is the name of the member that leads now.
	Leader string `json:"leader,omitempty" protobuf:"bytes,2,opt,name=leader"`
	// term of raft in which it leads.
	Term int64 `json:"term,omitempty" protobuf:"varint,3,opt,name=term"`
	// took is how long the move took.
	Took metav1.Duration `json:"took,omitempty" protobuf:"bytes,4,opt,name=took"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterProxyOptions is what can stand in the URL of the subresource proxy of a
// cluster.
type EtcdClusterProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path behind "proxy": "snapshot" streams a snapshot of the database.
	Path string `json:"path,omitempty" protobuf:"bytes,1,opt,name=path"`
	// member that is used, by name. Empty: any healthy one, followers first.
	Member string `json:"member,omitempty" protobuf:"bytes,2,opt,name=member"`
}
