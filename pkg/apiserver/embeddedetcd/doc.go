// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embeddedetcd runs an etcd inside the process, for an API server that
// stands alone. It listens on a unix socket that only this user can open, and on
// no port; its log goes to klog. It imports nothing of this project; start at
// server.go.
package embeddedetcd
