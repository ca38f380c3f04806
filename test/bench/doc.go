// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures how long the life of a cluster takes on the local
// Kubernetes, and what the programs cost. It prints a table and judges nothing.
// What each figure means is in docs/explanation/performance.md; `make bench` runs it. Start at
// main.go.
package main
