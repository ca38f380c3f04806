// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package s3 stores objects in a bucket of AWS S3 or of any store that speaks its
// protocol. Start at s3.go; what a user configures is in config.go.
package s3
