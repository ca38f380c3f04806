// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embeddedetcd runs an etcd in the process, for a single API server. etcd listens on a
// unix socket that only the user of the process can open, and on no port. ServeBackups serves
// snapshots on a port, to clients with a certificate. The log of etcd goes to klog. The package
// imports nothing of this project. Start at server.go.
package embeddedetcd
