// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is a simulated Kubernetes: the API with its log (store.go), and what the
// informers of a controller see of it (cache.go). It has nodes, kubelets, the containers of
// pods, volumes, Services, evictions and garbage collection.
//
// It runs package etcd in its containers and tells an Observer what happens. It may import
// timeline, schedules and etcd. Start at world.go.
package kubernetes
