// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets, and keys and values of etcd, from objects and logs before they
// leave a Kubernetes cluster. If it is not clear that a text is harmless, the text is removed. The
// package imports the names of annotations and nothing else of the plugin. Start at Object and
// Lines.
package redact
