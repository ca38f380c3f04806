// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the root of the controller; it holds no code. A package imports
// only packages below it:
//
//	manager                   flags, clients, caches, lease; builds and runs all others
//	cluster, backup, restore  one reconciler for each kind: observe, decide, act, write the status
//	job                       what backup and restore share: Jobs that run the agent
//	kubeadapter, etcdadapter  the ports of the reconcilers over real clients
//	waker, background         callbacks when an endpoint serves or ends; tasks that take long
//	orphanedpvc               reports and counts PVCs whose EtcdCluster does not exist
//	loop                      queue and workers of one kind
//	metrics                   what Prometheus reads
//	reconcile                 errors, status write, gate and back-off of all reconcilers
//
// Start at manager.Run, or at Reconcile of one kind.
package controller
