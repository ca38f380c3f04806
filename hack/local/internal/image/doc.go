// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image writes container images with one layer, as archives of the kind
// that "docker save" writes and containerd imports, and reads what such archives
// hold. The same files give the same archive, byte for byte.
package image
