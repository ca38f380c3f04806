// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package disk

import "os"

// Sync makes a file durable. The images of the agent are for Linux; elsewhere only tests run.
func Sync(file *os.File) error { return file.Sync() }

func allocate(file *os.File, size int64) error { return file.Truncate(size) }
