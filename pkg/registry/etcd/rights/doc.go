// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights decides which rights a request needs in addition to the right to its verb, and
// checks them with an authorizer. A request that names a Secret or a ServiceAccount needs the
// right to use it, because the controller creates a pod that mounts the Secret or runs as the
// ServiceAccount. The functions in needs.go and given.go are pure. The package imports only the
// API types and k8s.io. Start at needs.go.
package rights
