// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fielderrors names the fields of a request that cannot be decoded, all of them at once.
// A decoder ends at the first wrong value, and its error names the value instead of the field.
// So the package compares the body with the Go type that it is decoded into, after the server
// has rejected the request. A request that succeeds is only copied. The package imports nothing
// of this project. Start at handler.go.
package fielderrors
