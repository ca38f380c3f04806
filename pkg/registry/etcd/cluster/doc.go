// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster stores EtcdClusters: strategy.go normalises and checks them,
// table.go shows them, scale.go lets them be scaled, deletion.go guards those that
// must not be deleted. The other files are subresources that ask the members, or ask
// for something to be done: health.go, moveleader.go, operation.go, backup.go,
// restore.go, recover.go, proxy.go. It imports the API types, their validation and package
// live. Start at storage.go.
package cluster
