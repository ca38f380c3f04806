// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

type receivedKey struct{}

// WithReceived adds to the context of a request to back a cluster up what the client has
// sent. The object that the server decodes has the defaults of the API, and no longer shows
// which of them the client chose.
func WithReceived(ctx context.Context, received *v1beta2.EtcdBackup) context.Context {
	return context.WithValue(ctx, receivedKey{}, received)
}

// withoutDefaults returns the request without the defaults that the client did not send:
// spec.backup of the cluster says these.
func withoutDefaults(ctx context.Context, asked *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
	received, ok := ctx.Value(receivedKey{}).(*v1beta2.EtcdBackup)
	if !ok {
		return asked
	}
	asked = asked.DeepCopy()
	defaults := asked.Spec // which defaults there are depends on the other fields
	defaults.Compression, defaults.Verify = received.Spec.Compression, received.Spec.Verify
	v1beta2.SetDefaults_BackupSpec(&defaults)
	if received.Spec.Compression == "" && asked.Spec.Compression == defaults.Compression {
		asked.Spec.Compression = ""
	}
	if received.Spec.Verify == "" && asked.Spec.Verify == defaults.Verify {
		asked.Spec.Verify = ""
	}
	return asked
}
