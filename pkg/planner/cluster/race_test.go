// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package cluster

// raceEnabled makes the enumeration smaller where each state costs ten times more.
const raceEnabled = true
