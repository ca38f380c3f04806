// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import "path"

// InUseKey is the key, below the prefix of all objects, that marks a storage that an API server has used.
func InUseKey(prefix string) string { return path.Join("/", prefix, "begun") }
