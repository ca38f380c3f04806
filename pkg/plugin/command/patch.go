// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// patchSpec changes fields of the spec of the cluster.
func (t *target) patchSpec(ctx context.Context, fields map[string]any, dryRun bool) error {
	return t.patch(ctx, map[string]any{"metadata": map[string]any{"uid": t.cluster.UID}, "spec": fields}, dryRun)
}

// annotate sets an annotation of the cluster.
func (t *target) annotate(ctx context.Context, name, value string, dryRun bool) error {
	return t.patch(ctx, map[string]any{"metadata": map[string]any{"uid": t.cluster.UID, "annotations": map[string]any{name: value}}}, dryRun)
}

func (t *target) patch(ctx context.Context, fields map[string]any, dryRun bool) error {
	patch, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	_, err = t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Patch(ctx, t.cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry(dryRun)})
	return failure.With(err, t.right("patch", "etcdclusters"))
}

// readThen returns what reads the cluster and then says how far a change is.
func (t *target) readThen(look func(*target) (state, error)) func(context.Context) (state, error) {
	return func(ctx context.Context) (state, error) {
		cluster, err := t.read(ctx)
		if err != nil {
			return state{}, err
		}
		return look(&target{Clients: t.Clients, cluster: cluster})
	}
}
