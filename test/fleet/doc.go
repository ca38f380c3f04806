// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet stands in for the nodes under many clusters, so that one machine can run a
// controller for a thousand of them. It has a kubelet that starts no container and reports
// that pods run, and one etcd that responds for all members. Each member has an address of
// its own on loopback. The membership is modelled; there is no data and no consensus. Start
// at kubelet.go.
package fleet
