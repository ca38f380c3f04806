// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mount writes the present content of the pod's secrets into its volumes. While one does
// not exist, its volume keeps what it held; false if it never held anything: no container
// starts before every volume is there.
func (r *Run) mount() bool {
	pod, found := r.Pod()
	if !found {
		return false
	}
	mounts := map[string]*corev1.Secret{}
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].Secret
		if source == nil {
			continue
		}
		secret, found := Lookup[*corev1.Secret](r.w.Store, KindSecret, source.SecretName)
		if !found {
			secret = r.mounts[source.SecretName]
		}
		if secret == nil {
			return false
		}
		mounts[source.SecretName] = secret
	}
	r.mounts = mounts
	return true
}

// remount brings a change to the volumes of a pod after a while: soon if the kubelet has
// another reason to look, within a minute and a half anyway.
func (r *Run) remount(soon bool) {
	delay := r.w.Dice.Between(time.Second, 90*time.Second)
	if soon && r.w.Dice.Chance(80) {
		delay = r.w.Dice.Between(20*time.Millisecond, 2*time.Second)
	}
	r.w.After(delay, func() {
		switch {
		case r.mounts == nil || r.Over || r.Node == nil:
		case !r.Node.Hears():
			r.remount(false)
		default:
			r.mount()
			r.w.Observer.CertificatesChanged()
		}
	})
}

// secretChanged is what the kubelets make of a change of a secret.
func (w *World) secretChanged(secret *corev1.Secret, deleted bool) {
	if deleted {
		w.Observer.SecretRemoved(secret)
	}
	for _, r := range w.Runs {
		if r.mounts[secret.Name] != nil {
			r.remount(false)
		}
	}
	w.Observer.CertificatesChanged()
}

// CertificatesIn reads PEM.
func CertificatesIn(text []byte) []*x509.Certificate {
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
}

// LeafOf returns the certificate that a Secret holds, or nil.
func LeafOf(secret *corev1.Secret) *x509.Certificate {
	if secret == nil {
		return nil
	}
	if list := CertificatesIn(secret.Data[corev1.TLSCertKey]); len(list) > 0 {
		return list[0]
	}
	return nil
}
