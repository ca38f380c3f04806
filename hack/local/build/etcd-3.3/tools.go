// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package etcd pins etcd v3.3.27: the server and etcdctl. There was no etcdutl yet.
package etcd

import (
	_ "github.com/coreos/etcd"
	_ "github.com/coreos/etcd/etcdctl"
)
