// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates decides about the CA and the certificates of one cluster. It decides:
//   - which certificates the controller issues now.
//   - when the trust in an old CA ends.
//   - which pods must start again to trust another CA.
//   - what the condition CertificatesValid says.
//
// Package pkg/planner/cluster makes an Observed from what it knows, turns Steps into its
// actions, and decides when a member restarts. This package knows no members, quorums or rules.
// It is pure: it may import the API types, package diagnosis and the standard library, never a
// client, a clock or a logger. Nothing in an Observed is secret.
//
// Start at observed.go. The other files are:
//   - certificate.go: what is known of one certificate.
//   - issue.go: what is issued when, and how a new CA takes over.
//   - trust.go: which pods trust and accept the present CA.
//   - certmanager.go: certificates that cert-manager issues.
//   - condition.go and reasons.go: what the status says.
package certificates
