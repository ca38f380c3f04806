// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package containerd configures and drives the container runtime of the nodes. It
// also prepares stores: runtime directories that already hold all the images, of
// which a new node gets a copy made of hard links. Importing the images again into
// every node would take most of the time that a cluster needs to come up.
package containerd
