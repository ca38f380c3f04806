// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package containerd pins the container runtime of the nodes.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
