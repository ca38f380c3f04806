// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// verify checks what the server shows against what a client trusts.
func verify(client, server *bundle, now time.Time) error {
	roots := x509.NewCertPool()
	for _, ca := range client.cas {
		roots.AddCert(ca)
	}
	_, err := server.leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: testNames[0], CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

func TestEncodeAndParse(t *testing.T) {
	t.Parallel()
	have := walk(t, time.Duration(0), StepCreate, day, StepAddCA, 2*day, StepIssueLeaf)
	data, err := have.encode()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parsed.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, again); diff != "" {
		t.Errorf("parsed and encoded again (-want +got):\n%s", diff)
	}
	if len(parsed.cas) != 2 || !parsed.cas[0].Equal(have.cas[0]) {
		t.Error("the newest CA is not the first")
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	encode := func() map[string][]byte {
		data, err := walk(t, time.Duration(0), StepCreate).encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good, other := encode(), encode()
	keys := []string{caCertDataKey, caKeyDataKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey}
	for _, key := range keys {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			lacking := maps.Clone(good)
			delete(lacking, key)
			if _, err := parse(lacking); !errors.Is(err, errIncomplete) {
				t.Errorf("without %s: %v, want %v", key, err, errIncomplete)
			}
			broken := maps.Clone(good)
			broken[key] = []byte("-----BEGIN CERTIFICATE-----\nnonsense\n")
			if _, err := parse(broken); err == nil {
				t.Errorf("nonsense in %s is taken", key)
			}
			mixed := maps.Clone(good)
			mixed[key] = other[key]
			if _, err := parse(mixed); !errors.Is(err, errMismatch) {
				t.Errorf("%s of another: %v, want %v", key, err, errMismatch)
			}
		})
	}
	if _, err := parse(nil); !errors.Is(err, errIncomplete) {
		t.Errorf("an empty secret: %v, want %v", err, errIncomplete)
	}
}

func TestStepsLeaveTheirReceiver(t *testing.T) {
	t.Parallel()
	have := walk(t, time.Duration(0), StepCreate, day, StepAddCA)
	before, err := have.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []Step{StepNone, StepCreate, StepAddCA, StepIssueLeaf, StepDropOldCAs} {
		if _, err := have.step(step, start.Add(2*day), testNames); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	if _, err := have.step("Sideways", start, testNames); err == nil {
		t.Error("an unknown step is taken")
	}
	after, err := have.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a step changed the bundle it began with:\n%s", diff)
	}
}
