// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package abs stores objects as block blobs in a container of Azure Blob Storage.
// Start at abs.go; what a user configures is in config.go.
package abs
