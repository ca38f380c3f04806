// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology holds the fixed names and addresses of the local cluster: the
// network namespaces, links and cgroups it makes, and the subnets it uses. It is
// pure, so that every other package derives the same names from the same place
// and the clean-up can recognise what belongs to the cluster.
package topology
