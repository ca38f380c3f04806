// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture says what the answers of the members of a cluster come to: the
// verdict on its health and what to do next, and who is said to be a member by whom.
// It is pure: a Picture holds everything, its time included. It imports the API
// types, names of resources and the types of pkg/etcd. Start at picture.go;
// package live makes Pictures.
package picture
