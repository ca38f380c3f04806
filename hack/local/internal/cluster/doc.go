// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the local cluster as a whole: bringing it up, repairing and
// growing it, taking it down, and proving that nothing of it is left.
package cluster
