// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclient speaks to the cluster's API server with the few requests that
// bringing the cluster up needs: readiness, server-side apply, get.
package apiclient
