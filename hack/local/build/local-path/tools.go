// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package localpath pins the provisioner behind the local cluster's default
// StorageClass.
package localpath

import _ "github.com/rancher/local-path-provisioner"
