// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect reads the kubeconfig as kubectl does and makes the clients of the plugin. It
// imports the clients of Kubernetes and of this project, and nothing else of the plugin. Start
// at Flags.
package connect
