// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package task

const raceEnabled = false
