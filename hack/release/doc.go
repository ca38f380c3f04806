// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes what hack/release.sh cannot write with programs that exist: the
// container image for several architectures, and the signed statement of what was built from
// which commit. The same files give the same bytes. Start at main.go.
package main
