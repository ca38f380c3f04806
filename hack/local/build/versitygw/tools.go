// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package versitygw pins the server that speaks S3 in tests.
package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
