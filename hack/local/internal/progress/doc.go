// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress prints what a command is doing, one line per step with the
// time it took, on standard error; standard output stays free for responses.
package progress
