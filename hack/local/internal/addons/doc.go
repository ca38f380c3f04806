// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addons installs what a cluster needs beside Kubernetes itself: a DNS
// server, and a default StorageClass with a provisioner behind it.
package addons
