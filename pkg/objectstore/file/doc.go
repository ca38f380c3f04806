// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package file stores objects as files below a directory, such as a mounted volume. A
// file is written beside its place, synced, and renamed, so a crash never leaves half
// of one under its name. Symbolic links do not lead out of the directory. Start at
// file.go.
package file
