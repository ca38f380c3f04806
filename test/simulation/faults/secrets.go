// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// loseSecrets deletes Secrets together, as kubectl does with a label. The user has a backup of them.
func (w *World) loseSecrets(e schedules.Event) {
	if e.B%2 == 1 {
		for _, c := range slices.Clone(w.Controllers) {
			c.Crash()
		}
	}
	if w.savedSecrets == nil {
		w.savedSecrets = map[string]*corev1.Secret{}
	}
	for _, name := range []string{schedules.CASecret, schedules.PeerSecret} {
		if secret, found := kubernetes.Lookup[*corev1.Secret](w.Store, kubernetes.KindSecret, name); found {
			w.savedSecrets[name] = secret
		}
	}
	for _, name := range e.SecretNames() {
		w.Store.Remove(kubernetes.KindSecret, name)
	}
}

// restoreSecrets is a person that restores the Secrets of the CA and of the peers, if they are those
// of the cluster.
func (w *World) restoreSecrets(uid string) {
	for name, saved := range w.savedSecrets {
		if simetcd.OwnerOf(saved) != uid {
			continue
		}
		w.Trace("a person restores the Secret %s", name)
		w.Store.Remove(kubernetes.KindSecret, name)
		restored := saved.DeepCopy()
		restored.ResourceVersion = ""
		_, _ = kubernetes.Create(w.Store, restored)
	}
	w.savedSecrets = nil
}
