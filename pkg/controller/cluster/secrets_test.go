// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestParsedSecrets: the content of a Secret is parsed once, also if the Secret is read again,
// and again as soon as one entry differs.
func TestParsedSecrets(t *testing.T) {
	t.Parallel()
	now, key, count := time.Now(), types.NamespacedName{Namespace: "n", Name: "c"}, 0
	errParsed := errors.New("parsed")
	var cache secretCache
	parse := func(use v1beta2.CertificateUse, content string) {
		t.Helper()
		set := cache.of(key, &v1beta2.EtcdCluster{}, now)
		secret := &corev1.Secret{Data: map[string][]byte{"a": []byte("same"), "b": []byte(content)}}
		if p := set.parsed.of(use, secret, func() parsedSecret { count++; return parsedSecret{err: errParsed} }); !errors.Is(p.err, errParsed) {
			t.Errorf("parsed %+v", p)
		}
	}
	for _, test := range []struct {
		name    string
		before  func()
		use     v1beta2.CertificateUse
		content string
		want    int
	}{
		{"first", func() {}, v1beta2.CertificateUsePeer, "1", 1},
		{"again", func() {}, v1beta2.CertificateUsePeer, "1", 1},
		{"read again", func() { cache.invalidate(key) }, v1beta2.CertificateUsePeer, "1", 1},
		{"another content", func() {}, v1beta2.CertificateUsePeer, "2", 2},
		{"another use", func() {}, v1beta2.CertificateUseServer, "2", 3},
		{"the cluster was forgotten", func() { cache.forget(key) }, v1beta2.CertificateUseServer, "2", 4},
	} {
		test.before()
		if parse(test.use, test.content); count != test.want {
			t.Errorf("%s: parsed %d times, want %d", test.name, count, test.want)
		}
	}
}
