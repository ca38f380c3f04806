// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults carries out the events of a schedule: what breaks, and what people do (users.go).
// World is the whole simulated world; New puts it together. Settle ends the faults and waits until
// the cluster is as declared.
//
// It may import every other package of the simulation but the one on top. Start at faults.go.
package faults
