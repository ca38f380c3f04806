// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package background runs what takes longer than a reconcile may, such as a
// defragmentation: one task of a cluster at a time. It imports no other package of the
// controller. Start at tasks.go.
package background
