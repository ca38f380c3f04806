// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listcache encodes lists from remembered encodings of their items. An object is encoded
// once in each format, not with every list that contains it. The responses are the same bytes
// that the generic server writes. The package imports nothing of this project. Start at
// serializer.go.
package listcache
