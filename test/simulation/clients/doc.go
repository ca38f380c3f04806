// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clients is what uses the simulated clusters: programs that write through the client
// Service, and requests for a backup, a restore or a recovery.
//
// It may import what is below: timeline, schedules, etcd and kubernetes. Start at clients.go.
package clients
