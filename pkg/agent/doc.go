// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent is what the controller and the agent say to each other: the Request
// that starts a transfer, as JSON in one argument, the Progress that the agent serves
// while it runs, and the Result in its termination message. It is pure data: no
// request holds a secret, only the directories in which secrets are mounted. It may
// import the API types and pkg/snapshot/manifest. The work itself is in
// pkg/agent/task. Start at request.go.
package agent
