// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package released holds what releases have left in Kubernetes, and checks that the controller of
// today leaves it alone. testdata has a directory for each release. Each file in it is an
// EtcdCluster at rest, as the API server of that release stored it. Beside it are the pods, PVCs,
// Services, Secrets, budget and record that the controller made, and the members of etcd. The test
// decodes them without loss, has the real controller observe them, and fails if the planner plans
// anything: a pod would be replaced in every cluster like it.
//
// `go test ./test/released -update=v0.2.0` records a release: the controller in test/simulation
// makes the objects. docs/contributing/make-a-release.md says when. What is recorded of a published
// release never changes. Start at released_test.go.
package released
