// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest says what a stored backup is: the manifest that is written last and
// makes the backup visible, and the keys under which it is stored. It also decides which
// backups a retention policy deletes. It is pure: it reads no store, no clock and no file, and
// imports nothing of the project. Start at manifest.go.
package manifest
