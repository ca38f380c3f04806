// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop is the queue of one kind of object and the workers that empty it (loop.go).
// Keys with a change go before periodic looks (order.go). A reconcile that waits for
// something outside gives its worker to another key (aside.go). The package imports only
// metrics and pkg/share. Start at loop.go.
package loop
