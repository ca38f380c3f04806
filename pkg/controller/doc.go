// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the shell around the reconcilers: informers, queue,
// workers, the gate that waits for the cache to show the controller's own writes,
// metrics. What is done about each kind stands in the packages below it. Start at
// controller.go.
package controller
