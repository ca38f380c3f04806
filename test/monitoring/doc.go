// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks artifacts/monitoring against the programs: an alert on a
// metric that no program exports never fires, which goes unnoticed.
package monitoring
