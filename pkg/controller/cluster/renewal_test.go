// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// TestRenewal lets two thirds of the life of certificates pass that are issued here. The
// same CA renews them, so no member has to restart: etcd reads its certificate for each
// connection.
func TestRenewal(t *testing.T) {
	w := newCertWorld(t, v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}})
	for range 3 { // issue the CA, issue the certificates, look at them
		w.step()
	}
	first := w.step()
	if states(first)[certplanner.Usable] != 5 {
		t.Fatalf("not everything is issued: %+v", first.Certificates)
	}
	issued := w.clock.Now()

	w.clock.SetTime(issued.Add(certificates.LeafLife/3*2 - time.Hour))
	w.step()
	if s := w.step(); !isSameSerials(first, s) {
		t.Errorf("certificates are renewed %v too early", time.Hour)
	}
	w.clock.SetTime(issued.Add(certificates.LeafLife / 3 * 2))
	w.step()
	s := w.step()
	if states(s)[certplanner.Usable] != 5 {
		t.Fatalf("after the renewal it is %+v", s.Certificates)
	}
	for i := range s.Certificates {
		was, is := &first.Certificates[i], &s.Certificates[i]
		if renewed := was.Serial != is.Serial; renewed != (is.Use != v1beta2.CertificateUseCA) {
			t.Errorf("the %s certificate was renewed: %t", is.Use, renewed)
		}
		if is.Use != v1beta2.CertificateUseCA && (!is.NotAfter.After(was.NotAfter) || !is.Renewal.After(w.clock.Now())) {
			t.Errorf("the %s certificate is valid until %v now and was until %v; it is renewed at %v", is.Use, is.NotAfter, was.NotAfter, is.Renewal)
		}
	}
	if s.Trust != first.Trust || s.Trust == "" {
		t.Errorf("members are to trust %s and were to trust %s: they would restart", s.Trust, first.Trust)
	}
}

func isSameSerials(a, b *seen) bool {
	for i := range a.Certificates {
		if a.Certificates[i].Serial != b.Certificates[i].Serial {
			return false
		}
	}
	return len(a.Certificates) == len(b.Certificates)
}
