// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeSources looks whether the cluster still exists whose PVCs may be taken back, in each namespace that they name. Beyond
// planner.MostSources it does not look.
func observeSources(ctx context.Context, r *run) error {
	sought := planner.SoughtSource(&r.seen.Observed)
	known := map[string]planner.Source{} // by namespace
	for i := range r.seen.Found {
		f := &r.seen.Found[i]
		if f.Kind != planner.KindPVC || f.ClusterUID != sought {
			continue
		}
		if _, is := known[f.ClusterNamespace]; !is && len(known) >= planner.MostSources {
			known[f.ClusterNamespace] = planner.Source{Beyond: true}
		} else if !is {
			source, err := findSource(ctx, r, f.ClusterUID, f.ClusterNamespace)
			if err != nil {
				return err
			}
			if source.Exists != "" {
				// The status does not name a cluster of another namespace.
				klog.FromContext(ctx).Info("The EtcdCluster whose data a PVC holds still exists", "pvc", f.Name, "source", source.Exists)
			}
			known[f.ClusterNamespace] = source
		}
		f.Source = known[f.ClusterNamespace]
	}
	return nil
}

// findSource looks in the live API for the cluster whose data a PVC holds, by its UID. The PVC says the namespace of that
// cluster; if it does not, all namespaces are read. In another namespace a cluster of the same name counts, too: it may have
// another UID because it was created again and took its PVCs back. A PVC without a UID and a namespace names no cluster.
func findSource(ctx context.Context, r *run, uid, namespace string) (planner.Source, error) {
	own := r.seen.Cluster
	elsewhere := namespace != "" && namespace != own.Namespace
	if uid == resources.UnknownClusterUID && !elsewhere {
		return planner.Source{}, nil
	}
	clusters, err := r.Objects.ListClusters(ctx, namespace)
	if apierrors.IsForbidden(err) {
		return planner.Source{Unchecked: true}, nil
	}
	if err != nil {
		return planner.Source{}, fmt.Errorf("look whether the cluster whose PVCs were found exists: %w", err)
	}
	for i := range clusters {
		c := &clusters[i]
		if c.UID != own.UID && (string(c.UID) == uid || elsewhere && c.Name == own.Name) {
			return planner.Source{Exists: c.Namespace + "/" + c.Name}, nil
		}
	}
	return planner.Source{}, nil
}

// requireNoSource makes sure, in the live API, that the cluster whose data a PVC holds does not exist.
func requireNoSource(ctx context.Context, r *run, name string) error {
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return fmt.Errorf("PVC %s no longer exists: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	source, err := findSource(ctx, r, resources.FormerClusterUID(live), resources.FormerClusterNamespace(live))
	if err == nil && source != (planner.Source{}) {
		return fmt.Errorf("the EtcdCluster whose data PVC %s holds may exist (%+v): %w", name, source, reconcile.ErrStale)
	}
	return err
}
