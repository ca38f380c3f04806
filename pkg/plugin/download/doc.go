// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package download writes a snapshot of etcd to a file: to a temporary file first, which gets
// its name only after the hash at the end of the snapshot was checked. The package imports
// nothing else of the plugin. Start at Save.
package download
