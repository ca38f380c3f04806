// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options starts an API server from its flags. It sets other defaults than the upstream
// options where this server needs them, and adds a few flags. It imports apiserver and the
// packages below it. Start at options.go, and at run.go for the order of the start.
package options
