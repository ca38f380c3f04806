// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert makes and renews the server's certificate. A small
// certificate authority and one leaf live in a Secret, so that every replica shows
// the same; whoever comes first writes it. The authority's certificate goes into
// the APIService, so that the kube-apiserver verifies the server and nothing is
// ever skipped. plan.go decides and does nothing, manager.go does and decides
// nothing. It imports nothing of this project; start at manager.go.
package servingcert
