// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "errors"

// ErrModified is the cause of a conflict of resource versions.
var ErrModified = errors.New("the object has been modified")

var errPrecondition = errors.New("precondition failed")
