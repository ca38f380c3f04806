// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oss stores objects in a bucket of Alibaba Cloud Object Storage Service.
// Start at oss.go; what a user configures is in config.go.
package oss
