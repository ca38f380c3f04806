// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"maps"
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
	w.savePeerSecret()
	for _, name := range e.SecretNames() {
		w.Store.Remove(kubernetes.KindSecret, name)
	}
}

// savePeerSecret backs the Secret of the peers up, if it exists: it may be the first of several that are lost.
func (w *World) savePeerSecret() {
	if w.savedSecrets == nil {
		w.savedSecrets = map[string]*corev1.Secret{}
	}
	if secret, found := kubernetes.Lookup[*corev1.Secret](w.Store, kubernetes.KindSecret, schedules.PeerSecret); found {
		w.savedSecrets[secret.Name] = secret
	}
}

// putBackCA is a tool that saves the Secret of the CA, or applies the saved one.
func (w *World) putBackCA(e schedules.Event) {
	if e.A == 0 {
		w.savedCA, _ = kubernetes.Lookup[*corev1.Secret](w.Store, kubernetes.KindSecret, schedules.CASecret)
		return
	}
	kubernetes.Edit(w.Store, kubernetes.KindSecret, schedules.CASecret, func(s *corev1.Secret) {
		if w.savedCA != nil && simetcd.OwnerOf(s) == simetcd.OwnerOf(w.savedCA) {
			w.Trace("a tool puts the saved CA back")
			s.Data, s.Annotations = maps.Clone(w.savedCA.Data), maps.Clone(w.savedCA.Annotations)
		}
	})
}

// restoreSecrets is a person that restores the Secret of the peers, if it is that of the cluster.
func (w *World) restoreSecrets(uid string) {
	if saved, found := w.savedSecrets[schedules.PeerSecret]; found && simetcd.OwnerOf(saved) == uid {
		name := saved.Name
		w.Trace("a person restores the Secret %s", name)
		w.Store.Remove(kubernetes.KindSecret, name)
		restored := saved.DeepCopy()
		restored.ResourceVersion = ""
		_, _ = kubernetes.Create(w.Store, restored)
	}
	w.savedSecrets = nil
}
