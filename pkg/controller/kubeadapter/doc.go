// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeadapter implements the ports of the reconcilers with the clients and
// informers of Kubernetes. These are the caches (cache_clusters.go, cache_jobs.go), the
// live API (client.go, client_objects.go, client_jobs.go) and the API of cert-manager
// (certmanager.go). The reconcilers declare these ports themselves; this package imports no
// reconciler. Start at client.go.
package kubeadapter
