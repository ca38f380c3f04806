// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
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

// TestSecretsAreReadAgainInTime: one Secret of a cluster at rest is read again every 15 seconds, and all of them after five
// minutes. That goes on when the clock is set back.
func TestSecretsAreReadAgainInTime(t *testing.T) {
	t.Parallel()
	for passed, want := range map[time.Duration][]string{
		secretLook - time.Second: {"a", "b"},
		secretLook:               {"b"},
		secretLife:               nil,
		-3 * time.Hour:           nil,
	} {
		key, cluster, now := types.NamespacedName{Namespace: "n", Name: "c"}, &v1beta2.EtcdCluster{}, time.Unix(1000, 0)
		var cache secretCache
		set := cache.of(key, cluster, now)
		set.order, set.secrets = []string{"a", "b"}, map[string]*corev1.Secret{"a": nil, "b": nil}
		if got := cache.of(key, cluster, now.Add(passed)); !slices.Equal(slices.Sorted(maps.Keys(got.secrets)), want) {
			t.Errorf("after %v it knows %v, want %v", passed, got.secrets, want)
		}
		if set.dropOldest(now.Add(-time.Hour)); slices.Contains(set.order, "a") {
			t.Errorf("after %v and a clock that was set back no Secret is read again", passed)
		}
	}
}

// TestLargeSecretsAreNotKept: a tenant chooses how large the Secrets are that a cluster names. Large ones are used and not
// kept, and what cannot be a Secret with certificates says its size.
func TestLargeSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	entry := func(name string, size int) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[name] = append(s.Data[name], make([]byte, size)...) }
	}
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		kept   bool
		says   string
	}{
		"small":             {func(*corev1.Secret) {}, true, ""},
		"another entry":     {entry("truststore.jks", 1<<20), false, ""},
		"large annotation":  {func(s *corev1.Secret) { s.Annotations = map[string]string{"a": strings.Repeat("x", 200<<10)} }, false, ""},
		"bundle":            {entry("peer-ca.crt", 220<<10), false, ""},
		"too large to read": {entry("peer-ca.crt", 300<<10), false, "entries peer.crt, peer.key and peer-ca.crt have 30"},
		"not parsed":        {entry("peer-ca.crt", 1<<20), false, "and at most 262144 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := staticWorld(t)
			secret := w.secret("peer")
			test.change(secret)
			w.put(secret)
			for range 2 {
				s := w.step()
				peer := s.Certificates[0]
				if test.says == "" && peer.State != certplanner.Usable {
					t.Fatalf("it cannot be used: %s", peer.Message)
				}
				if test.says != "" && (peer.State != certplanner.Unusable || !strings.HasPrefix(peer.Message, "secret peer (") || !strings.Contains(peer.Message, test.says)) {
					t.Fatalf("it is %v: %q", peer.State, peer.Message)
				}
			}
			key := types.NamespacedName{Namespace: "n", Name: "c"}
			var names []string
			if set := w.r.secrets.clusters[key]; set != nil {
				names = slices.Sorted(maps.Keys(set.secrets))
				if len(set.order) != len(names) {
					t.Errorf("it keeps %v, and reads %v again in turn", names, set.order)
				}
			}
			if _, parsed := w.r.secrets.parsed[key][v1beta2.CertificateUsePeer]; parsed != test.kept || slices.Contains(names, "peer") != test.kept {
				t.Errorf("kept: %v, and the parsed Secret: %v", names, parsed)
			}
		})
	}
}

// TestSecretsOfAClusterAreBounded: small Secrets are not kept without limit, either, and the smallest are kept first.
func TestSecretsOfAClusterAreBounded(t *testing.T) {
	t.Parallel()
	set := &secretSet{secrets: map[string]*corev1.Secret{}}
	for i := range 40 {
		name := string(rune('A' + i))
		set.secrets[name] = &corev1.Secret{Data: map[string][]byte{"a": make([]byte, 20<<10-i)}}
		set.order = append(set.order, name)
	}
	set.secrets["missing"], set.order = nil, append(set.order, "missing")
	set.release()
	total := 0
	for _, secret := range set.secrets {
		if secret != nil {
			total += secret.Size()
		}
	}
	if total > maxKeptOfCluster || total < maxKeptOfCluster-maxKept || set.order[len(set.order)-1] != "missing" || set.secrets["A"] != nil {
		t.Errorf("%d bytes are kept in %v", total, set.order)
	}
}

// TestLargeCAIsNotKept: the CA before must not come back in place of a CA that is too large to be kept.
func TestLargeCAIsNotKept(t *testing.T) {
	t.Parallel()
	w, before := issuedWorld(t)
	if !before.CA.Kept {
		t.Fatal("the CA is not kept")
	}
	w.r.secrets.invalidate(types.NamespacedName{Namespace: "n", Name: "c"})
	secret := w.secret("c-ca-tls")
	secret.Data["other"] = make([]byte, maxKept)
	w.put(secret)
	if s := w.step(); s.CA.Kept || s.signer == nil {
		t.Errorf("kept: %v, signer: %v", s.CA.Kept, s.signer)
	}
}

// TestCertificateIsNotKept: what cert-manager and the author of a Certificate have written is not kept, only what it means.
func TestCertificateIsNotKept(t *testing.T) {
	t.Parallel()
	w := newCertWorld(t, requested)
	w.install()
	w.step()
	for _, name := range requestedSecrets {
		w.sign(name, certificates.LeafLife)
	}
	u := w.request("c-peer-tls")
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "message": strings.Repeat("x", 1<<20)}}}
	if err := w.dynamic.Tracker().Update(resources.CertManagerResource, u, "n"); err != nil {
		t.Fatal(err)
	}
	w.step()
	requests := w.r.secrets.clusters[types.NamespacedName{Namespace: "n", Name: "c"}].requests
	if r := requests["c-peer-tls"]; len(requests) != len(requestedSecrets) || !r.IsCurrent() || len(r.Message) > 2<<10 {
		t.Errorf("%d requests are kept, the one for peers with %d bytes", len(requests), len(r.Message))
	}
}
