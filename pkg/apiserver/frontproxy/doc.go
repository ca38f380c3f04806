// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frontproxy recognises requests that the kube-apiserver has authorized
// already. Whoever holds the front-proxy client certificate can name any user, so
// a request that arrives with it carries a decision along; asking a second time
// costs a SubjectAccessReview per object name and adds nothing. The proof is the
// Go type of the user that the authenticator returns: no header can make one. It is given
// only while one common name is allowed, which is the kube-apiserver's.
// It imports nothing of this project; start at authenticator.go.
package frontproxy
