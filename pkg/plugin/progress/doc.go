// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows how far something is that takes longer than two seconds. On a terminal
// it writes one line with a bar again and again. Elsewhere it writes a line for each change.
// Follow reads a state until it is final. The package imports nothing else of the plugin but
// failure. Start at Line.
package progress
