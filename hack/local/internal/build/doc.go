// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes everything that a local cluster consists of: programs from
// Go modules, a few programs from Debian packages, images from both, and the store
// of images that nodes start with. Existing files are kept; versions are
// pinned by the modules below hack/local/build.
package build
