// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kind is what the stores of the three kinds have in common: create,
// update and status strategies, the limit on an object's size, tables, and the
// scale subresource. A kind describes itself with a Definition and gets the rest
// from here. It imports the API machinery and nothing of this project; start at
// definition.go.
package kind
