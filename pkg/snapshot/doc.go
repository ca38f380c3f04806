// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot turns the stream of an etcd snapshot into what is stored, and back. It
// checks the hash at the end of etcd's stream before it reports a good end. It compresses,
// encrypts, and sums both sides. Memory is bounded whatever the
// size, and nothing is written to a file. Readers report the end only when every
// check has passed; a store that commits at the end therefore never commits a bad
// backup. The version of the data is read from the database while it streams past
// (pages.go). The package knows neither etcd's client nor a store. Start at encode.go
// and decode.go; package manifest describes the result.
package snapshot
