// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes what hack/release.sh cannot write with programs that exist:
//
//   - the container image for several architectures (image.go).
//   - the manifest with which krew installs the kubectl plugin (krew.go).
//   - the signed statement of what was built from which commit (statement.go).
//   - signatures of images and files, which cosign verifies (sign.go).
//
// The same files give the same bytes. Programs and archives are made by build.sh, for which
// build_test.go shows that. Start at main.go.
package main
