// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows how far something is that takes longer than two seconds: one line with
// a bar that is written again and again on a terminal, and a line for each change elsewhere.
// Follow reads a state until it is final. The package imports nothing else of the plugin but
// failure. Start at Line.
package progress
