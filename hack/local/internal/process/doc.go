// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts the long-running programs of the cluster, detached from
// the command that starts them, and finds and stops them again later.
//
// A record on disk names each one by pid, start time and boot, so that a pid
// which the kernel has given to another program is never signalled. The programs
// also carry a mark in their environment: it finds those that an interrupted run
// started without living to record them.
package process
