// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transfer is what the planners of backups and of restores have in common: the Job
// that moves or reads the data, what it waits for, and when it has waited long enough. It
// is pure, as they are.
package transfer
