// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package share divides what all namespaces share, so that one namespace leaves room for the others. Limiter rejects work
// beyond a share, and Queue lets it wait. Turns is a queue in which namespaces take turns. Buckets bounds the bytes that each
// namespace writes. The package does no I/O.
// Start at places.go.
package share
