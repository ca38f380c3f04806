// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout says where the local cluster keeps its files: a cache of built
// programs and images that outlives clusters, and the state of the one cluster,
// which goes away with it.
package layout
