// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// statusBytes is how many bytes of objects the controller writes at once to change the statuses of a namespace. It is
	// four times what the users of a namespace may write, so that a namespace of many clusters reaches it only if
	// something there changes without end.
	statusBytes = 64 << 20
	// statusRefill is how long it takes until so many bytes may be written again: 256 KiB a second.
	statusRefill = 256 * time.Second
)

// NewStatuses returns what bounds the statuses that the controller writes for each namespace. What a status says comes from
// members that tenants run: one that reports other values with each response must not fill the storage of all namespaces.
func NewStatuses(c clock.PassiveClock) *share.Buckets {
	return share.NewBuckets(statusBytes, statusRefill, c)
}

// takeStatus counts a write of a status, or returns an error that says when it is possible.
func (c Client) takeStatus(namespace string, bytes int) error {
	wait := c.Statuses.Take(namespace, int64(bytes))
	if wait == 0 {
		return nil
	}
	return fmt.Errorf("the statuses in namespace %s took %d MiB and more than %d KiB a second to write, which is the limit for a namespace; "+
		"they are written again in %v. Look there for a member that reports other values with each response",
		namespace, statusBytes>>20, statusBytes>>10/int(statusRefill/time.Second), wait.Round(time.Second))
}
