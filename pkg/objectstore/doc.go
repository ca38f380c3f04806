// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectstore stores objects in buckets of several kinds behind one interface,
// Store. Package storetest checks its promises for every implementation: an object is
// visible whole or not at all, nothing is overwritten without a request, and listings are
// complete. Package s3, gcs, abs, oss and file implement
// it. What they share is here: uploads in parts of bounded memory, a transport that
// fails when no byte moves, and errors that errors.Is finds. It knows neither etcd
// nor Kubernetes. Start at store.go.
package objectstore
