// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package task

// raceEnabled makes the walks shorter where each step costs ten times more.
const raceEnabled = true
