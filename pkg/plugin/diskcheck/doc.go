// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diskcheck measures a disk of a StorageClass with the agent, in a Job, and judges whether
// etcd can use the disk. It removes what it has created. The package imports connect, failure and
// report of the plugin. Start at Start.
package diskcheck
