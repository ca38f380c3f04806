// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frontproxy recognizes requests that the kube-apiserver has authorized. A client with
// the front-proxy certificate can name any user, so that a second authorization of its requests
// adds no security. It would cost a SubjectAccessReview for each object name. The proof that a
// request came through the front proxy is the Go type of its user: no header can create a
// value of it. The package imports nothing of this project. Start at authenticator.go.
package frontproxy
