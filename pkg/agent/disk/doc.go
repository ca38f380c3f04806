// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disk measures how long a disk takes to make the writes of etcd's log durable. It
// imports the messages of the agent and nothing else of this project. Start at Test.Run.
package disk
