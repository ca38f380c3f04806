// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options turns flags into a running API server. It holds the defaults of
// the upstream options that differ here, and the few flags of our own. It imports
// apiserver and its parts; start at options.go, and at run.go for the order in
// which things come up and go down.
package options
