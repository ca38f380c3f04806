// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults runs the fault matrix: every fault of faults.go beside every operation of
// operations.go, on a real cluster of the local Kubernetes, under clients whose responses are
// checked. One combination is a cell. Start at run.go, which runs one cell.
//
//   - cell.go, observation.go and table.go are pure: which cells there are and which ones a seed
//     chooses, what is judged, and how results are written. Unit tests cover them.
//   - fault_*.go begin and undo faults. They act on processes by their IDs, and on the network and
//     the mounts of the local nodes. Every fault is undone at the end of its cell.
//   - operations.go and operation_*.go make the requests of a user while the fault lasts.
//
// `go test ./test/faults` alone runs the unit tests. `make faults` runs cells; docs/testing.md
// says how to choose them.
package faults
