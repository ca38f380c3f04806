// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// submitPod creates the pod of a member.
func submitPod(ctx context.Context, r *run, requested *corev1.Pod) error {
	r.seen.Record.PutBack.Mark(requested)
	created, err := r.Objects.CreatePod(ctx, requested)
	if err != nil {
		return err
	}
	r.Gate.Note(r.key, created)
	return noteAdmitted(ctx, r, requested, requested, created)
}

// errPolicyRestarts means that a write has restarted a container: an admission policy has changed the image with a
// write that did not ask for another image. The whole plan ends, because each further write may restart one more voter.
var errPolicyRestarts = errors.New("an admission policy has changed the image with this write, so the container restarts")

// updatePod writes a pod that was read as live.
func updatePod(ctx context.Context, r *run, live, requested *corev1.Pod) error {
	updated, err := r.Objects.UpdatePod(ctx, requested)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	was, asked, has := resources.EtcdImage(live), resources.EtcdImage(requested), resources.EtcdImage(updated)
	err = noteAdmitted(ctx, r, live, requested, updated)
	if asked != was || has == asked {
		return err
	}
	warning(r, EventMemberRestarted, "Pod %s restarts its container: an admission policy has changed its image from %s to %s", live.Name, was, has)
	return fmt.Errorf("pod %s: %w", live.Name, errors.Join(errPolicyRestarts, err))
}

// noteAdmitted notes on a pod what an admission policy has made of the requested image, so that the
// controller recognizes a later change by something else. Without the note, because this controller
// ends here, the image counts as changed: it is requested again, and the policy changes it again. The note also
// names the container that ran before the write.
func noteAdmitted(ctx context.Context, r *run, before, requested, response *corev1.Pod) error {
	const attempts = 5 // the scheduler and the kubelet write to a new pod at the same time
	for range attempts {
		noted, differs := resources.NoteAdmitted(before, requested, response)
		if !differs {
			return nil
		}
		updated, err := r.Objects.UpdatePod(ctx, noted)
		if err == nil {
			r.Gate.Note(r.key, updated)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("note the admitted image on pod %s: %w", noted.Name, err)
		}
		live, err := readOwnedPod(ctx, r, noted.Name, string(noted.UID))
		if err != nil || live == nil {
			return err
		}
		if resources.EtcdImage(live) != resources.EtcdImage(response) {
			return nil // something has changed it since
		}
		response = live
	}
	return fmt.Errorf("pod %s changes all the time: %w", requested.Name, reconcile.ErrStale)
}
