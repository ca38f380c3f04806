// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks artifacts/monitoring against the programs: an alert on a
// metric that nobody exports never fires, and nobody notices.
package monitoring
