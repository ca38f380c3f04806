// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package registry pins the image registry that stands in for a private mirror in tests.
package registry

import _ "github.com/distribution/distribution/v3/cmd/registry"
