// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the controller together: clients, informers, the lease, the
// HTTP endpoint, the loop of each kind. Start at Run in manager.go.
package manager
