// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ossgateway stands in for Alibaba's store in tests: it takes the native
// protocol and passes it on to an S3 server, with which it shares most of its words. It
// knows the access key by name and checks no signature, so it proves the calls, and not
// the signing, of a client.
package ossgateway
