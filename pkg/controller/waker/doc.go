// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waker puts a cluster back on the queue as soon as an endpoint of etcd serves, or
// serves no more. It asks the endpoints themselves, so that no timer delays the next step.
// It imports no other package of the controller. Start at waker.go.
package waker
