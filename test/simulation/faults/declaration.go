// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// declareDeaf has the user declare what lets etcd run out of reach of the controllers, and take it
// back later.
func (w *World) declareDeaf(e schedules.Event) {
	w.Change(func(s *v1beta2.ClusterSpec) {
		PolicyOf(s).EtcdEnv = []corev1.EnvVar{{Name: simetcd.DeafEnvironment, Value: "true"}}
	})
	w.After(e.For, func() {
		w.Disturb()
		w.Repair()
	})
}

// setImage sets the image of one pod, as kubectl set image does: to that of another patch release, or to one
// of another repository.
func (w *World) setImage(e schedules.Event) {
	pod := w.AnyPod(e.A)
	if pod == nil || resources.IsPrepared(pod.Annotations) {
		return
	}
	image := kubernetes.Requested(simetcd.Image(pod))
	policy := strings.TrimSuffix(simetcd.Image(pod), image)
	if e.B%2 == 0 {
		repository, tag, _ := strings.Cut(image, ":v")
		image = repository + ":v" + laterPatch(tag)
		w.Checks.Runs(simetcd.OwnerOf(pod), laterPatch(tag))
	} else {
		image = "elsewhere.example/" + image
	}
	w.Checks.ImageSet(pod.Name)
	kubernetes.Edit(w.Store, kubernetes.KindPod, pod.Name, func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			if c := &p.Spec.Containers[i]; c.Name == resources.ContainerName {
				c.Image = policy + image
				p.Generation++ // as Kubernetes does for each change of a spec but the choice of the node
			}
		}
	})
}

// declareWrongImage has the user declare a later patch release, whose image holds the version before, and
// take it back later.
func (w *World) declareWrongImage(e schedules.Event) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	if _, lies := w.Etcd.Mislabeled[resources.Image(cluster)]; lies {
		return
	}
	before := resources.Version(cluster)
	next := cluster.DeepCopy()
	next.Spec.Version = laterPatch(before)
	w.Etcd.Mislabeled[resources.Image(next)] = before
	w.Change(func(s *v1beta2.ClusterSpec) { s.Version = next.Spec.Version })
	w.After(e.For, func() {
		w.Disturb()
		w.Change(func(s *v1beta2.ClusterSpec) {
			if s.Version == next.Spec.Version {
				s.Version = before
			}
		})
	})
}

// takeBackWrongImage has the user declare the version that the declared image holds. An API that was brought back declares
// again what was taken back before.
func (w *World) takeBackWrongImage(cluster *v1beta2.EtcdCluster) {
	if holds, lies := w.Etcd.Mislabeled[resources.Image(cluster)]; lies {
		w.Change(func(s *v1beta2.ClusterSpec) { s.Version = holds })
	}
}

// laterPatch is a patch release after a version that nothing else declares.
func laterPatch(version string) string {
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		return version
	}
	return fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch()+50)
}
