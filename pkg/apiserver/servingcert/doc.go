// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert issues and renews the serving certificate of the API server. A Secret
// holds a CA and one leaf certificate, which all replicas use; the first replica creates it. The
// certificate of the CA goes into the APIService, so that the kube-apiserver can verify the
// server. plan.go decides the next step, bundle.go issues certificates, manager.go writes them.
// Of this project the package imports pkg/certificates only. Start at manager.go.
package servingcert
