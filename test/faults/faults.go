// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"time"
)

// reach is what a fault befalls.
type reach int

const (
	// reachesProgram is a fault that takes no member: of a program, or of all nodes.
	reachesProgram reach = iota
	// reachesMember is a fault of one member's process.
	reachesMember
	// reachesNode is a fault of a node, with all members on it.
	reachesNode
)

// undo ends a fault. It is called once, also when the cell has failed.
type undo func(context.Context) error

// fault is how something goes wrong.
type fault struct {
	reach reach
	// begin begins the fault. It undoes what it began if it returns an error.
	begin func(context.Context, *stage) (undo, error)
	// gapLimit is the longest time without an acknowledged write while a quorum is up.
	gapLimit time.Duration
}

const (
	// usualGap has room for two elections on a machine with two cores.
	usualGap = 10 * time.Second
	// impairedGap is for members that lose packets or wait for their disks: each retry of a
	// lost packet waits twice as long as the one before.
	impairedGap = 30 * time.Second
)

// faults says how each fault begins.
var faults = map[Fault]fault{
	NodeKilled:           {reach: reachesNode, gapLimit: usualGap, begin: nodeFault("kill", "start")},
	NodeRebooted:         {reach: reachesNode, gapLimit: usualGap, begin: nodeFault("reboot", "start")},
	CutFromAPI:           {reach: reachesNode, gapLimit: usualGap, begin: cutFromAPI},
	CutFromMembers:       {reach: reachesNode, gapLimit: usualGap, begin: cutFromMembers},
	CutFromAll:           {reach: reachesNode, gapLimit: usualGap, begin: nodeFault("partition", "heal")},
	DiskSlow:             {reach: reachesMember, gapLimit: impairedGap, begin: diskFault(slowDisk)},
	DiskHung:             {reach: reachesMember, gapLimit: usualGap, begin: diskFault(hungDisk)},
	DiskFull:             {reach: reachesMember, gapLimit: usualGap, begin: diskFault(fullDisk)},
	ProcessStopped:       {reach: reachesMember, gapLimit: usualGap, begin: stopProcess},
	KubeletStopped:       {reach: reachesNode, gapLimit: usualGap, begin: nodeFault("kubelet-stop", "kubelet-start")},
	PacketLoss:           {reach: reachesNode, gapLimit: impairedGap, begin: losePackets},
	DNSDown:              {reach: reachesProgram, gapLimit: usualGap, begin: cutDNS},
	ControllerKilled:     {reach: reachesProgram, gapLimit: usualGap, begin: killController},
	APIServerKilled:      {reach: reachesProgram, gapLimit: usualGap, begin: killAPIServer},
	APIServerStorageLost: {reach: reachesProgram, gapLimit: usualGap, begin: loseStorage},
}
