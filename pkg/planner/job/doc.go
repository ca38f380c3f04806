// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job is what the planners of backups and of restores have in common. It describes
// the Job that moves or reads the data, what the Job waits for, and how long it may wait. It decides which backups a
// Job that runs may still delete (pruner.go).
// The package is pure, as both planners are.
package job
