// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterVerdict is what the responses of all members come to.
type ClusterVerdict string

// Values of ClusterVerdict.
const (
	// VerdictHealthy: every declared voter serves and follows the one leader, and a
	// quorum has just responded.
	VerdictHealthy ClusterVerdict = "Healthy"
	// VerdictDegraded: a quorum has just responded, and something is not as it should
	// be. The tolerance says how many more voters may fail.
	VerdictDegraded ClusterVerdict = "Degraded"
	// VerdictQuorumLost: no quorum responded.
	VerdictQuorumLost ClusterVerdict = "QuorumLost"
	// VerdictDisagreement: members that respond do not agree on the leader or on the
	// list of members.
	VerdictDisagreement ClusterVerdict = "Disagreement"
	// VerdictSplitBrain: members of different etcd clusters respond.
	VerdictSplitBrain ClusterVerdict = "SplitBrain"
	// VerdictUnreachable: pods run and none responds to the API server.
	VerdictUnreachable ClusterVerdict = "Unreachable"
	// VerdictCreating: the cluster has not served yet.
	VerdictCreating ClusterVerdict = "Creating"
	// VerdictHibernated: the cluster is declared to have no members.
	VerdictHibernated ClusterVerdict = "Hibernated"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterHealth is what the members of a cluster say at this moment. It is found
// out when it is requested, by the API server itself, and kept nowhere.
type EtcdClusterHealth struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// verdict: Healthy, Degraded, QuorumLost, Disagreement, SplitBrain, Unreachable,
	// Creating or Hibernated.
	Verdict ClusterVerdict `json:"verdict" protobuf:"bytes,2,opt,name=verdict,casttype=ClusterVerdict"`
	// message says why, for a reader.
	Message string `json:"message,omitempty" protobuf:"bytes,3,opt,name=message"`
	// nextSteps say what to do about it, the most urgent first.
	// +listType=atomic
	NextSteps []NextStep `json:"nextSteps,omitempty" protobuf:"bytes,4,rep,name=nextSteps"`
	// tolerance is how many more voters may fail before the quorum is lost. It is
	// negative when the quorum is lost, and absent while it is not known.
	Tolerance *int32 `json:"tolerance,omitempty" protobuf:"varint,5,opt,name=tolerance"`
	// leader is the name of the leader that the responding members follow; empty if they
	// do not agree or follow none.
	Leader string `json:"leader,omitempty" protobuf:"bytes,6,opt,name=leader"`
	// desiredSize is the number of voters that the spec asks for.
	DesiredSize int32 `json:"desiredSize" protobuf:"varint,7,opt,name=desiredSize"`
	// voters is the number of voters in etcd's list.
	Voters int32 `json:"voters" protobuf:"varint,8,opt,name=voters"`
	// serving is the number of those that responded and follow a leader.
	Serving int32 `json:"serving" protobuf:"varint,9,opt,name=serving"`
	// quorumResponded is true if a read went through a quorum while this was found out.
	QuorumResponded bool `json:"quorumResponded" protobuf:"varint,10,opt,name=quorumResponded"`
	// clusterID is etcd's cluster ID in hexadecimal; empty if no member responded.
	ClusterID string `json:"clusterID,omitempty" protobuf:"bytes,11,opt,name=clusterID"`
	// members, in the order of their names.
	// +listType=map
	// +listMapKey=name
	Members []MemberHealth `json:"members,omitempty" protobuf:"bytes,12,rep,name=members"`
	// clientCertificateExpiry is when the certificate ends with which the API server
	// and the controller talk to the cluster. Absent without TLS.
	ClientCertificateExpiry *metav1.Time `json:"clientCertificateExpiry,omitempty" protobuf:"bytes,13,opt,name=clientCertificateExpiry"`
	// problems tells what could not be found out, and why.
	// +listType=atomic
	Problems []string `json:"problems,omitempty" protobuf:"bytes,14,rep,name=problems"`
	// probedAt is when the members were queried.
	ProbedAt metav1.MicroTime `json:"probedAt" protobuf:"bytes,15,opt,name=probedAt"`
	// took is how long it took to ask all of them.
	Took metav1.Duration `json:"took" protobuf:"bytes,16,opt,name=took"`
}

// NextStep is something to do.
type NextStep struct {
	// why it should be done.
	Why string `json:"why" protobuf:"bytes,1,opt,name=why"`
	// command to type, as it stands. Empty if it is nothing that can be typed.
	Command string `json:"command,omitempty" protobuf:"bytes,2,opt,name=command"`
}

// MemberHealth is what one member says, and what it runs on.
type MemberHealth struct {
	// name of the member, and of its pod and PVC.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// id is etcd's member ID in hexadecimal; empty if it is not known.
	ID string `json:"id,omitempty" protobuf:"bytes,2,opt,name=id"`
	// responded is true if the member responded in time.
	Responded bool `json:"responded" protobuf:"varint,3,opt,name=responded"`
	// error says why it did not.
	Error string `json:"error,omitempty" protobuf:"bytes,4,opt,name=error"`
	// role: Leader, Follower, Learner, or Pending if it has not joined yet. Empty if it
	// is not in etcd's list.
	Role MemberRole `json:"role,omitempty" protobuf:"bytes,5,opt,name=role,casttype=MemberRole"`
	// leader that the member follows: a name, or an ID in hexadecimal if it has no
	// name here. Empty if it knows none.
	Leader string `json:"leader,omitempty" protobuf:"bytes,6,opt,name=leader"`
	// clusterID is the ID of the cluster that the member belongs to, in hexadecimal.
	ClusterID string `json:"clusterID,omitempty" protobuf:"bytes,7,opt,name=clusterID"`
	// term of raft that the member is in.
	Term int64 `json:"term,omitempty" protobuf:"varint,8,opt,name=term"`
	// raftIndex is the last entry that the member knows to be committed.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,9,opt,name=raftIndex"`
	// raftApplied is the last entry that it has applied.
	RaftApplied int64 `json:"raftApplied,omitempty" protobuf:"varint,10,opt,name=raftApplied"`
	// raftLag is how many entries it is behind the one that is furthest ahead.
	RaftLag int64 `json:"raftLag,omitempty" protobuf:"varint,11,opt,name=raftLag"`
	// dbSize is the size of its database file in bytes.
	DBSize int64 `json:"dbSize,omitempty" protobuf:"varint,12,opt,name=dbSize"`
	// dbSizeInUse is what of it is in use, in bytes; a defragmentation frees the rest.
	DBSizeInUse int64 `json:"dbSizeInUse,omitempty" protobuf:"varint,13,opt,name=dbSizeInUse"`
	// quota is the size in bytes at which it rejects writes.
	Quota int64 `json:"quota,omitempty" protobuf:"varint,14,opt,name=quota"`
	// alarms that the member knows of.
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty" protobuf:"bytes,15,rep,name=alarms"`
	// errors that the member reports, in its own words.
	// +listType=atomic
	Errors []string `json:"errors,omitempty" protobuf:"bytes,16,rep,name=errors"`
	// version of etcd that it runs.
	Version string `json:"version,omitempty" protobuf:"bytes,17,opt,name=version"`
	// certificateExpiry is when the certificate ends that it showed. Absent without TLS.
	CertificateExpiry *metav1.Time `json:"certificateExpiry,omitempty" protobuf:"bytes,18,opt,name=certificateExpiry"`
	// took is how long it took to respond.
	Took metav1.Duration `json:"took,omitempty" protobuf:"bytes,19,opt,name=took"`
	// pod of the member; absent if there is none.
	Pod *MemberPod `json:"pod,omitempty" protobuf:"bytes,20,opt,name=pod"`
	// PVC with the data of the member; absent if there is none.
	Claim *MemberPVC `json:"claim,omitempty" protobuf:"bytes,21,opt,name=claim"`
}

// MemberPod is the pod of a member, as Kubernetes sees it.
type MemberPod struct {
	// name of the pod.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// phase of the pod.
	Phase corev1.PodPhase `json:"phase,omitempty" protobuf:"bytes,2,opt,name=phase,casttype=k8s.io/api/core/v1.PodPhase"`
	// ready as Kubernetes sees it.
	Ready bool `json:"ready" protobuf:"varint,3,opt,name=ready"`
	// terminating is true if the deletion of the pod was requested.
	Terminating bool `json:"terminating,omitempty" protobuf:"varint,4,opt,name=terminating"`
	// node that it runs on.
	Node string `json:"node,omitempty" protobuf:"bytes,5,opt,name=node"`
	// address of the pod.
	Address string `json:"address,omitempty" protobuf:"bytes,6,opt,name=address"`
	// restarts of etcd in this pod.
	Restarts int32 `json:"restarts,omitempty" protobuf:"varint,7,opt,name=restarts"`
	// message says why the pod does not run, in the words of Kubernetes.
	Message string `json:"message,omitempty" protobuf:"bytes,8,opt,name=message"`
}

// MemberPVC is the PersistentVolumeClaim of a member.
type MemberPVC struct {
	// name of the PVC.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// phase of the PVC.
	Phase corev1.PersistentVolumeClaimPhase `json:"phase,omitempty" protobuf:"bytes,2,opt,name=phase,casttype=k8s.io/api/core/v1.PersistentVolumeClaimPhase"`
	// volume that it is bound to.
	Volume string `json:"volume,omitempty" protobuf:"bytes,3,opt,name=volume"`
	// capacity of the volume, such as 8Gi.
	Capacity string `json:"capacity,omitempty" protobuf:"bytes,4,opt,name=capacity"`
	// terminating is true if the deletion of the PVC was requested.
	Terminating bool `json:"terminating,omitempty" protobuf:"varint,5,opt,name=terminating"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterMembers is the member list that each member reports, beside the pods and
// PVCs that exist. The API server computes it for each request and does not store it.
type EtcdClusterMembers struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// agreed is true if all sources that responded report the same.
	Agreed bool `json:"agreed" protobuf:"varint,2,opt,name=agreed"`
	// disagreements tell what is reported differently, and what Kubernetes has that etcd
	// has not, and the other way round.
	// +listType=atomic
	Disagreements []string `json:"disagreements,omitempty" protobuf:"bytes,3,rep,name=disagreements"`
	// members that any member, pod or PVC shows, in the order of their names.
	// +listType=atomic
	Members []ListedMember `json:"members,omitempty" protobuf:"bytes,4,rep,name=members"`
	// views is what each one says.
	// +listType=map
	// +listMapKey=member
	Views []MemberView `json:"views,omitempty" protobuf:"bytes,5,rep,name=views"`
	// confirmed is true if a quorum confirmed a list while this was found out; listed
	// then says whether a member is in the confirmed list.
	Confirmed bool `json:"confirmed" protobuf:"varint,6,opt,name=confirmed"`
	// problems tells what could not be found out, and why.
	// +listType=atomic
	Problems []string `json:"problems,omitempty" protobuf:"bytes,7,rep,name=problems"`
	// probedAt is when the members were queried.
	ProbedAt metav1.MicroTime `json:"probedAt" protobuf:"bytes,8,opt,name=probedAt"`
	// took is how long it took to ask all of them.
	Took metav1.Duration `json:"took" protobuf:"bytes,9,opt,name=took"`
}

// ListedMember is a member that at least one member list, pod or PVC shows.
type ListedMember struct {
	// name of the member; that of its pod if it has not started yet.
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	// id is etcd's member ID in hexadecimal; empty for a pod or a PVC that no member
	// responds for.
	ID string `json:"id,omitempty" protobuf:"bytes,2,opt,name=id"`
	// listed is true if the member is in the list that a quorum confirmed; without
	// such a list, if it is in the list of any member.
	Listed bool `json:"listed" protobuf:"varint,3,opt,name=listed"`
	// role: Leader, Follower, Learner, or Pending if it has not started yet.
	Role MemberRole `json:"role,omitempty" protobuf:"bytes,4,opt,name=role,casttype=MemberRole"`
	// peerURLs at which the other members reach it.
	// +listType=atomic
	PeerURLs []string `json:"peerURLs,omitempty" protobuf:"bytes,5,rep,name=peerURLs"`
	// clientURLs that it announces.
	// +listType=atomic
	ClientURLs []string `json:"clientURLs,omitempty" protobuf:"bytes,6,rep,name=clientURLs"`
	// knownBy names the members that have it in their list.
	// +listType=atomic
	KnownBy []string `json:"knownBy,omitempty" protobuf:"bytes,7,rep,name=knownBy"`
	// unknownTo names the members that responded and do not.
	// +listType=atomic
	UnknownTo []string `json:"unknownTo,omitempty" protobuf:"bytes,8,rep,name=unknownTo"`
	// pod of the member; absent if there is none.
	Pod *MemberPod `json:"pod,omitempty" protobuf:"bytes,9,opt,name=pod"`
	// PVC with the data of the member; absent if there is none.
	Claim *MemberPVC `json:"claim,omitempty" protobuf:"bytes,10,opt,name=claim"`
}

// MemberView is what one member says about all.
type MemberView struct {
	// member that says so.
	Member string `json:"member" protobuf:"bytes,1,opt,name=member"`
	// error says why it said nothing.
	Error string `json:"error,omitempty" protobuf:"bytes,2,opt,name=error"`
	// clusterID that it belongs to, in hexadecimal.
	ClusterID string `json:"clusterID,omitempty" protobuf:"bytes,3,opt,name=clusterID"`
	// leader that it follows: a name, or an ID in hexadecimal. Empty if it knows none.
	Leader string `json:"leader,omitempty" protobuf:"bytes,4,opt,name=leader"`
	// term of raft that it is in.
	Term int64 `json:"term,omitempty" protobuf:"varint,5,opt,name=term"`
	// members in its own list, each as ID=name, with "(learner)" behind a learner.
	// +listType=atomic
	Members []string `json:"members,omitempty" protobuf:"bytes,6,rep,name=members"`
}
