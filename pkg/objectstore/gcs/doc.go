// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gcs stores objects in a bucket of Google Cloud Storage, over its JSON
// protocol. Start at gcs.go; what a user configures is in config.go.
package gcs
