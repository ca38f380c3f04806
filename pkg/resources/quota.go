// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Defaults of etcd, and what it adds to the size of a request before it compares the sum with
// its quota. Source: server/storage/quota.go and server/embed/config.go of etcd 3.6.
const (
	defaultQuotaBackendBytes = 2 << 30
	defaultMaxRequestBytes   = 3 << 19
	defaultMaxTxnOps         = 128
	grpcOverheadBytes        = 512 << 10
	overheadOfOp             = 256
)

// QuotaBackendBytes is the declared quota of c: how many bytes the database of a member has when it
// rejects writes. A pod that was made before the last change runs with another quota: see QuotaOf.
func QuotaBackendBytes(c *v1beta2.EtcdCluster) int64 {
	if e := c.Spec.Etcd; e != nil && e.QuotaBackendBytes != nil && !e.QuotaBackendBytes.IsZero() {
		return e.QuotaBackendBytes.Value()
	}
	return defaultQuotaBackendBytes
}

// Quota says when etcd rejects writes because its database is full.
type Quota struct {
	// Bytes is the size of the database at which it rejects every write.
	Bytes int64
	// Headroom is the most that etcd estimates for one write. It raises the alarm NOSPACE for a write
	// that would exceed the quota by this estimate. A database that is below the quota by the headroom
	// has room for any write, so an alarm that is disarmed then does not come back at once.
	Headroom int64
}

// QuotaOf returns the quota with which etcd in a pod was started.
func QuotaOf(pod *corev1.Pod) Quota {
	bytes := number(pod, "quota-backend-bytes", defaultQuotaBackendBytes)
	if bytes < 0 {
		return Quota{Bytes: math.MaxInt64} // etcd enforces none
	}
	bytes = cmp.Or(bytes, defaultQuotaBackendBytes)
	headroom := number(pod, "max-request-bytes", defaultMaxRequestBytes) + grpcOverheadBytes + overheadOfOp*number(pod, "max-txn-ops", defaultMaxTxnOps)
	// Of a quota of a few MiB, most would be headroom.
	return Quota{Bytes: bytes, Headroom: min(headroom, bytes/4)}
}

// number returns a numeric option of etcd in a pod. etcd takes it from the last flag of that name,
// else from the environment.
func number(pod *corev1.Pod, flag string, otherwise int64) int64 {
	c, variable, text := etcdContainer(pod), variableOf(flag), ""
	for i := range c.Env {
		if c.Env[i].Name == variable {
			text = c.Env[i].Value
		}
	}
	for _, arg := range c.Command {
		if value, found := strings.CutPrefix(arg, "--"+flag+"="); found {
			text = value
		}
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return otherwise
	}
	return n
}
