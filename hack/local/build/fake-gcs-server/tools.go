// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package fakegcsserver pins the server that speaks Google Cloud Storage in tests.
package fakegcsserver

import _ "github.com/fsouza/fake-gcs-server"
