// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

type receivedKey struct{}

// WithReceived adds the body that the client sent to the context of a request to
// etcdclusters/backup. The server decodes the body with the defaults of the API, so the
// decoded object does not show which fields the client set.
func WithReceived(ctx context.Context, received *v1beta2.EtcdBackup) context.Context {
	return context.WithValue(ctx, receivedKey{}, received)
}

// withoutDefaults returns the request without the defaults that the client did not send. The
// values of these fields come from spec.backup of the cluster.
func withoutDefaults(ctx context.Context, request *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
	received, ok := ctx.Value(receivedKey{}).(*v1beta2.EtcdBackup)
	if !ok {
		return request
	}
	request = request.DeepCopy()
	defaults := request.Spec // the defaults depend on the other fields
	defaults.Compression, defaults.Verify = received.Spec.Compression, received.Spec.Verify
	v1beta2.SetDefaults_BackupSpec(&defaults)
	if received.Spec.Compression == "" && request.Spec.Compression == defaults.Compression {
		request.Spec.Compression = ""
	}
	if received.Spec.Verify == "" && request.Spec.Verify == defaults.Verify {
		request.Spec.Verify = ""
	}
	return request
}
