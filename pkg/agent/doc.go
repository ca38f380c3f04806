// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent holds the messages between the controller and the agent. The Request
// starts a transfer, as JSON in one argument. The agent serves its Progress while it runs,
// and writes the Result to its termination message. The package is pure data: no request
// holds a secret, only the directories in which secrets are mounted. It may import the API
// types and pkg/snapshot/manifest. The work itself is in pkg/agent/task. Start at
// request.go.
package agent
