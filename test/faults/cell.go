// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Fault is the name of something that goes wrong.
type Fault string

// Values of Fault. Those about a node befall the node of one member, and those about a member
// its process.
const (
	NodeKilled           Fault = "node-killed"
	NodeRebooted         Fault = "node-rebooted"
	CutFromAPI           Fault = "cut-from-api"
	CutFromMembers       Fault = "cut-from-members"
	CutFromAll           Fault = "cut-from-all"
	DiskSlow             Fault = "disk-slow"
	DiskHung             Fault = "disk-hung"
	DiskFull             Fault = "disk-full"
	ProcessStopped       Fault = "process-stopped"
	KubeletStopped       Fault = "kubelet-stopped"
	PacketLoss           Fault = "packet-loss"
	DNSDown              Fault = "dns-down"
	ControllerKilled     Fault = "controller-killed"
	APIServerKilled      Fault = "apiserver-killed"
	APIServerStorageLost Fault = "apiserver-storage-lost"
)

// Faults are all faults, in the order of the table.
var Faults = []Fault{
	NodeKilled, NodeRebooted, CutFromAPI, CutFromMembers, CutFromAll, DiskSlow, DiskHung, DiskFull, ProcessStopped,
	KubeletStopped, PacketLoss, DNSDown, ControllerKilled, APIServerKilled, APIServerStorageLost,
}

// Operation is the name of what a user requests meanwhile.
type Operation string

// Values of Operation.
const (
	Steady     Operation = "steady"
	ScaleUp    Operation = "scale-up"
	ScaleDown  Operation = "scale-down"
	Upgrade    Operation = "upgrade"
	CARotation Operation = "ca-rotation"
	Backup     Operation = "backup"
	Restore    Operation = "restore"
	Recovery   Operation = "recovery"
)

// Operations are all operations, in the order of the table.
var Operations = []Operation{Steady, ScaleUp, ScaleDown, Upgrade, CARotation, Backup, Restore, Recovery}

// Cell is one fault beside one operation, on a cluster of a size.
type Cell struct {
	Fault     Fault
	Operation Operation
	Size      int
}

func (c Cell) String() string { return fmt.Sprintf("%s/%s/%d", c.Fault, c.Operation, c.Size) }

// sizes are the sizes that a cluster may have before an operation. Scaling goes between three
// and five: three nodes hold no more members, and one member has no fault tolerance.
func sizes(o Operation) []int {
	switch o {
	case ScaleUp:
		return []int{3}
	case ScaleDown:
		return []int{5}
	default:
		return []int{3, 5}
	}
}

// finalSize is the size of the cluster after the operation.
func (c Cell) finalSize() int {
	switch c.Operation {
	case ScaleUp:
		return 5
	case ScaleDown:
		return 3
	default:
		return c.Size
	}
}

// Matrix returns all cells.
func Matrix() []Cell {
	var cells []Cell
	for _, fault := range Faults {
		for _, operation := range Operations {
			for _, size := range sizes(operation) {
				cells = append(cells, Cell{Fault: fault, Operation: operation, Size: size})
			}
		}
	}
	return cells
}

// Core are a few cells that take less than two minutes together: a fault of a member, and one
// of a program beside an operation that the program carries out.
func Core() []Cell {
	return []Cell{{ProcessStopped, Steady, 3}, {ControllerKilled, ScaleUp, 3}}
}

// errCell is the error of a text that names no cell.
var errCell = errors.New("this is no cell of the fault matrix")

// ParseCell reads FAULT/OPERATION or FAULT/OPERATION/SIZE. Without a size it is the smallest.
func ParseCell(text string) (Cell, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Cell{}, fmt.Errorf("%w: %q; write FAULT/OPERATION or FAULT/OPERATION/SIZE", errCell, text)
	}
	c := Cell{Fault: Fault(parts[0]), Operation: Operation(parts[1])}
	if !slices.Contains(Faults, c.Fault) {
		return Cell{}, fmt.Errorf("%w: there is no fault %q; the faults are %v", errCell, c.Fault, Faults)
	}
	if !slices.Contains(Operations, c.Operation) {
		return Cell{}, fmt.Errorf("%w: there is no operation %q; the operations are %v", errCell, c.Operation, Operations)
	}
	allowed := sizes(c.Operation)
	c.Size = allowed[0]
	if len(parts) == 3 {
		size, err := strconv.Atoi(parts[2])
		if err != nil || !slices.Contains(allowed, size) {
			return Cell{}, fmt.Errorf("%w: %s has no size %q; the sizes are %v", errCell, c.Operation, parts[2], allowed)
		}
		c.Size = size
	}
	return c, nil
}

// Choose returns n cells that a seed chooses. No cell comes a second time before all others
// have come.
func Choose(seed uint64, n int) []Cell {
	dice := rand.New(rand.NewPCG(seed, 0))
	all := Matrix()
	var chosen []Cell
	for len(chosen) < n {
		dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		chosen = append(chosen, all[:min(n-len(chosen), len(all))]...)
	}
	return chosen
}

// Dice returns the random numbers of a cell. They do not depend on the other cells of the run,
// so that the cell meets the same choices when it runs alone with the same seed.
func (c Cell) Dice(seed uint64) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.String())) // a hash never returns an error
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}
