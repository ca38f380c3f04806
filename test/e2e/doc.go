// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: everything runs on a real Kubernetes, the local one
// or any other (docs/testing.md). What a test needs and only the local one offers it asks for
// with RequireLocal, in its first line. The tests do what a user does, mostly with kubectl,
// wait by watching, and judge by the responses of etcd itself: its members, its data. Each
// test has a namespace of its own that enforces the Pod Security Standard "restricted". Tests
// that disturb what all share (the programs, the nodes) run one after the other, before the
// rest. `make e2e` runs them. Start at suite_test.go.
package e2e
