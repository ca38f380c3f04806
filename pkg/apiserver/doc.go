// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves the group etcd.database.coreos.com behind
// kube-aggregator. Config is completed once and makes a Server; the packages below
// are its parts: options parses flags, embeddedetcd keeps the storage in the
// process, clientca and frontproxy tell who sends a request and what the
// kube-apiserver has authorized, servingcert makes the certificate. It imports the registry and never a
// controller. Start at config.go.
package apiserver
