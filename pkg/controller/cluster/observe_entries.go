// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// missingEntriesError is about a Secret that lacks entries which the flags of a living pod name.
type missingEntriesError struct {
	secret, pod string
	entries     []string
	// static is true if users write the Secret.
	static bool
}

func (e *missingEntriesError) Error() string {
	text := fmt.Sprintf("%v: it lacks %s, which the flags of pod %s name. Without these entries the etcd of the pod makes no new TLS connection and cannot restart",
		certificates.ErrIncomplete, strings.Join(e.entries, ", "), e.pod)
	if e.static {
		text += ". Add these entries again, beside the other entries. To use other names, name another Secret in spec.TLS.static afterwards, and leave this Secret as it is until every pod was replaced"
	}
	return text
}

// Unwrap makes it one of the errors that stateOf knows.
func (e *missingEntriesError) Unwrap() error { return certificates.ErrIncomplete }

// requireMountedEntries returns a missingEntriesError if a Secret that living pods mount for a use lacks entries which
// their flags name: the kubelets remove the files of these entries from every pod. During a rollout to another Secret it
// looks at the Secret before, too. A member that restarts with the next Secret must reach the members that have not
// restarted. A Secret that was deleted counts as complete, because the kubelets keep the files that they have mounted.
func requireMountedEntries(ctx context.Context, r *run, set *secretSet, use resources.SecretUse) error {
	if use != resources.UsePeer && use != resources.UseServer {
		return nil // pods do not mount it
	}
	pods, err := r.Cache.Pods(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list pods from the cache: %w", err)
	}
	recovering, err := r.Cache.HiddenPods(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list pods of recovery members from the cache: %w", err)
	}
	pods = slices.Concat(pods, recovering)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return compare(a.Name, b.Name) }) // the same pod is named each time
	for _, p := range pods {
		name, files, mounts := resources.MountedFiles(p, use)
		if !mounts || !isLiving(r.seen.Cluster, p) {
			continue
		}
		secret, err := readSecret(ctx, r, set, r.key.Namespace, name)
		if err != nil {
			return err
		}
		if secret == nil {
			continue
		}
		if missing := files.MissingFrom(secret); len(missing) > 0 {
			return &missingEntriesError{secret: name, pod: p.Name, entries: missing, static: r.seen.Cluster.Spec.TLS.Static != nil}
		}
	}
	return nil
}

// isLiving is true for a pod of the cluster whose etcd runs or is to run.
func isLiving(c *v1beta2.EtcdCluster, p *corev1.Pod) bool {
	ended := []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}
	return resources.Owns(c, p) && p.DeletionTimestamp == nil && !slices.Contains(ended, p.Status.Phase)
}
