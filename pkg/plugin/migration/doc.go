// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration says how an etcd that another program runs comes under the operator: which
// objects a migration by snapshot creates, and which steps replace the original etcd-operator.
// The package is pure: it reads and writes nothing. It imports the API types. Start at Snapshot.
package migration
