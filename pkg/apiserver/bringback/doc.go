// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bringback makes a data directory of a snapshot of the API server's storage: for the embedded
// etcd, or for one of the members of artifacts/ha. Its promise is that revisions never go back, however
// old the snapshot is and however often it is brought back. A watch of the Kubernetes API that continues
// from a later revision would wait for ever, without an error.
//
// It may import pkg/snapshot and the library of etcdutl. Start at Fill; artifacts/ha/storage.sh calls it
// in the pods of artifacts/ha/fill.yaml.
package bringback
