// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted makes text that another program wrote fit for a status, an event or a message:
// names of members, errors of etcd, results of Jobs. Any text is possible there, of any length. The
// package is pure and imports nothing of this project.
package untrusted
