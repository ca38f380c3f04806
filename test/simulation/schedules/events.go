// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"fmt"
	"time"
)

// Event is something that happens at a moment. What its numbers mean depends on its
// kind; they are taken modulo what there is at that moment.
type Event struct {
	At   time.Duration
	Kind EventKind
	A, B int
	For  time.Duration
}

// String writes the event for a reader.
func (e Event) String() string {
	return fmt.Sprintf("%v %s(%d, %d, %v)", e.At, e.Kind, e.A, e.B, e.For)
}

// EventKind is a kind of event.
type EventKind int

// Values of EventKind.
const (
	EventCall EventKind = iota
	EventFreeze
	EventSecondController
	EventKillController
	EventKillContainer
	EventDeletePod
	EventForceDeletePod
	EventEvict
	EventPressure
	EventNodeDown
	EventNodeLost
	EventDrain
	EventSlowStart
	EventSlowCatchUp
	EventHideMember
	EventCutMember
	EventScale
	EventVersion
	EventPause
	EventResume
	EventRecreate
	EventDeleteService
	EventEditService
	EventDeleteBudget
	EventDeletePVC
	EventHibernate
	EventRelabel
	EventRotateCA
	EventDeleteSecret
	EventDeclare
	EventRestart
	EventBadDeclaration
	// EventDisaster and EventRecover are never drawn with the others; see recoveryEvents.
	EventDisaster
	EventRecover
	// EventBackup, EventRestore and EventTotalLoss neither; see restoreEvents.
	EventBackup
	EventRestore
	EventTotalLoss
	// EventGrow and EventRetention are not either; see volumeEvents.
	EventGrow
	EventRetention
	// EventWipe and EventDamage are not either; see wipeEvents and damageEvents.
	EventWipe
	EventDamage
	// EventOldAPI is not either; see rollBackEvents.
	EventOldAPI
	// EventSever is not either; see severEvents.
	EventSever
	// EventHang is not either; see hangEvents.
	EventHang
	// EventReject is not either; see admissionEvents.
	EventReject
	// EventDeleteNamespace is not either; see admissionEvents.
	EventDeleteNamespace
	// EventLoseRecord is not either; see recordEvents.
	EventLoseRecord
	// EventLoseAPI is in stories only.
	EventLoseAPI
	// EventDeaf, EventSetImage and EventWrongImage are in stories only.
	EventDeaf
	EventSetImage
	EventWrongImage
	// EventStallLearner is in stories only.
	EventStallLearner
	// EventUnmanagedMember and EventOtherCluster are in stories only.
	EventUnmanagedMember
	EventOtherCluster
	// EventFill is never drawn with the others; see spaceEvents.
	EventFill
	// EventLoseSecrets is not drawn with the others; see secretEvents.
	EventLoseSecrets
	// EventReturn is in stories only.
	EventReturn
	// EventOldCA is in stories only.
	EventOldCA
	eventKinds
)

var eventNames = [eventKinds]string{
	"call", "freeze a cache", "second controller", "kill controller", "kill container", "delete pod", "force-delete pod",
	"evict", "node pressure", "node down", "node lost", "drain", "slow start", "slow catch-up", "hide member",
	"cut member", "scale", "change version", "pause", "resume", "delete and recreate", "delete service", "edit service",
	"delete budget", "delete PVC", "hibernate and wake", "strip labels",
	"rotate the CA", "delete secret",
	"change the pods' declaration", "request a restart", "declare what does not run",
	"disaster", "ask for a recovery",
	"back up", "restore", "lose everything",
	"declare larger volumes", "keep or release volumes", "wipe a disk", "damage a learner",
	"save the API and bring it back", "cut nodes off", "hang a disk", "reject pods", "delete the namespace", "lose the record",
	"lose the API and make its object again from the record",
	"declare what is out of reach", "set the image of a pod", "declare an image of another version",
	"stall the next learner for ever",
	"add a member with etcdctl", "lead an address to another cluster",
	"fill the database",
	"delete secrets together",
	"a backup tool brings the namespace back",
	"save the CA, or put the saved one back",
}

// String is the name of the kind in traces.
func (k EventKind) String() string { return eventNames[k] }

// weights say how often each kind of event is drawn.
var weights = [eventKinds]int{
	EventCall: 60, EventFreeze: 12, EventSecondController: 5, EventKillController: 6, EventKillContainer: 12,
	EventDeletePod: 10, EventForceDeletePod: 8, EventEvict: 5, EventPressure: 5, EventNodeDown: 6, EventNodeLost: 4,
	EventDrain: 3, EventSlowStart: 4, EventSlowCatchUp: 4, EventHideMember: 8, EventCutMember: 8, EventScale: 16,
	EventVersion: 10, EventPause: 3, EventResume: 3, EventRecreate: 4, EventDeleteService: 5, EventEditService: 5,
	EventDeleteBudget: 2, EventDeletePVC: 3, EventHibernate: 4, EventRelabel: 2,
	EventDeclare: 14, EventRestart: 4, EventBadDeclaration: 5,
}
