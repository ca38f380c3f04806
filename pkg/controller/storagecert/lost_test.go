// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storagecert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// restart replaces the controller by one that has read nothing yet.
func (b *bench) restart() {
	set := b.manager.setRestartBefore
	b.manager = NewManager(b.manager.config, b.kube, b.clock)
	b.manager.setRestartBefore = set
}

func (b *bench) loseCA() {
	b.Helper()
	if err := b.kube.CoreV1().Secrets(ns).Delete(b.Context(), service+caSuffix, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) damageCA() {
	b.Helper()
	b.putCA(map[string][]byte{corev1.TLSCertKey: []byte("nonsense")})
}

func (b *bench) putCA(data map[string][]byte) {
	b.Helper()
	secret := b.secret(caSuffix)
	secret.Data = data
	if _, err := b.kube.CoreV1().Secrets(ns).Update(b.Context(), secret, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// TestLostCA loses the Secret of the CA. Programs that were started before and after that accept each other.
func TestLostCA(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		lose func(*bench)
		// restored is true if the CA comes back from memory.
		restored bool
	}{
		{"deleted", (*bench).loseCA, true},
		{"damaged", (*bench).damageCA, true},
		{"deleted after a start of the controller", func(b *bench) { b.restart(); b.sync(); b.loseCA() }, true},
		{"deleted while no controller ran", func(b *bench) { b.restart(); b.loseCA() }, false},
		{"damaged while no controller ran", func(b *bench) { b.restart(); b.damageCA() }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.sync()
			started, ca, leaves := b.pair(memberSuffix).CAs, b.secret(caSuffix).Data, b.leaves()
			test.lose(b)
			b.sync()
			b.checkAccepted(started)
			b.checkAccepted(b.pair(memberSuffix).CAs)
			if got := b.restartBefore.IsZero(); got != test.restored {
				t.Errorf("programs must restart before %v", b.restartBefore)
			}
			if got := cmp.Equal(b.secret(caSuffix).Data, ca); got != test.restored {
				t.Errorf("the CA is the one of before: %t, want %t", got, test.restored)
			}
			if diff := cmp.Diff(leaves, b.leaves()); diff != "" {
				t.Errorf("certificates were issued again: - before, + now:\n%s", diff)
			}
		})
	}
}

// TestEndOfLostCA follows a CA in the place of one whose key is lost. Programs restart within the days before their
// certificates are renewed, and the trust in the lost CA ends on request. At each step programs accept each other.
func TestEndOfLostCA(t *testing.T) {
	t.Parallel()
	for _, dropped := range []bool{false, true} {
		b := newBench(t)
		b.sync()
		lost := b.pair(memberSuffix).CAs
		b.restart()
		b.loseCA()
		b.sync()
		both := b.pair(clientSuffix).CAs
		if len(both) != 2 || !both[1].Equal(lost[0]) {
			t.Fatalf("%d CAs are trusted after the loss", len(both))
		}
		renewal := certificates.Renewal(b.pair(memberSuffix).Leaf)
		for range 2 { // it is set at each sync
			b.sync()
			if !b.restartBefore.Equal(renewal) {
				t.Fatalf("programs must restart before %v, want %v", b.restartBefore, renewal)
			}
			b.restartBefore = time.Time{}
		}
		if dropped {
			b.annotate(resources.AnnotationDropOldCA)
		} else {
			b.clock.Step(certificates.LeafLife/3*2 - 26*time.Hour)
			b.sync()
			b.checkAccepted(lost)
			b.clock.Step(26 * time.Hour)
		}
		b.restartBefore = start
		b.sync()
		if !b.restartBefore.IsZero() {
			t.Errorf("after the last of their certificates was issued again, programs must restart before %v", b.restartBefore)
		}
		b.checkAccepted(both)
		b.checkAccepted(both[:1])
		b.checkAccepted(b.pair(memberSuffix).CAs)
	}
}

// TestOlderCAPutBack puts back the Secret of the CA that was replaced and dropped.
func TestOlderCAPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync()
	older := b.secret(caSuffix).Data
	for _, request := range []string{resources.AnnotationRotateCA, resources.AnnotationDropOldCA} {
		b.annotate(request)
		b.sync()
	}
	started := b.pair(memberSuffix).CAs
	b.putCA(older)
	b.sync()
	b.checkAccepted(started)
	b.checkAccepted(b.pair(memberSuffix).CAs)
	before := b.writes()
	b.sync()
	if n := b.writes() - before; n != 0 {
		t.Errorf("the next sync wrote %d times", n)
	}
}

// leaves returns the certificates of members and clients as their Secrets hold them.
func (b *bench) leaves() [][]byte {
	b.Helper()
	return [][]byte{b.secret(memberSuffix).Data[corev1.TLSCertKey], b.secret(clientSuffix).Data[corev1.TLSCertKey]}
}
