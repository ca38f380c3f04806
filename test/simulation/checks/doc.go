// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks looks for broken rules: those of docs/explanation/safety-rules.md, and what a cluster must come
// to when the faults have ended.
//
// calls.go judges the calls of controllers, checks.go what they do to a quorum, recovery.go
// recoveries and restores, status.go what the status says. goal.go and goal_*.go say what is not yet
// as declared, and rest.go that a cluster at rest stays so.
//
// It may import manager and what is below. Start at checks.go.
package checks
