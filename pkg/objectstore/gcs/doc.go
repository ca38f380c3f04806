// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gcs stores objects in a bucket of Google Cloud Storage, over its JSON
// protocol. Start at gcs.go; how an object is sent so that an interrupted upload leaves
// nothing is in upload.go, what a user configures in config.go.
package gcs
