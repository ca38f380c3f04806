// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentjob reads what has become of a Job that runs the agent, and of its pods: why
// they wait, how they ended, and in which words that can be told. It is the base of the
// controllers of backups and of restores, which have what their Jobs do in common.
package agentjob
