// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestDistrusts(t *testing.T) {
	rejected := func(o *Observed) { o.Pods[2].Trust, o.Pods[2].Accepts = "before", false }
	trustUnknown := func(o *Observed) { o.Trust = "" }
	for _, test := range []struct {
		name  string
		o     *Observed
		trust string
		want  bool
	}{
		{"the present CAs", issued(), "now", false},
		{"other CAs", issued(), "before", true},
		{"a pod that does not say", issued(), "", true},
		{"other CAs while both are trusted", issued(overlap), "before", false},
		{"other CAs while both are trusted, and the present one is not cross-signed", issued(overlap, notCrossSigned), "before", true},
		{"other CAs while both are trusted, after an older CA was put back", issued(overlap, olderCA), "before", true},
		{"it is unknown what to trust", issued(trustUnknown), "before", false},
		{"another issuer: the present CAs", static(), "now", false},
		{"another issuer: other CAs", static(), "before", true},
		{"another issuer: a pod of an earlier release that does not say", static(), "", false},
		{"another issuer: a member rejects the present certificates", static(rejected), "before", false},
		{"another issuer: it is unknown what to trust", static(rejected, trustUnknown), "before", false},
	} {
		if got := test.o.Distrusts(test.trust); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// TestRestartTogether: members restart at the same time only if they reject each other permanently,
// and lose no data.
func TestRestartTogether(t *testing.T) {
	rejects := func(o *Observed) {
		trusts("before")(o)
		o.Pods[1].Accepts = false
		if o.CA != nil {
			o.CA.CrossSigned = false
		}
	}
	older := func(o *Observed) { o.Pods[0].Trust = "before" }
	for _, test := range []struct {
		name string
		o    *Observed
		want string
	}{
		{"all accept each other", issued(), ""},
		{"one trusts other CAs and accepts", issued(older), ""},
		{"one rejects the others", issued(rejects), "b"},
		{"one rejects the others, and another trusts other CAs", issued(rejects, older), "a b"},
		{"one does not run", issued(rejects, func(o *Observed) { o.Pods[1].Running = false }), ""},
		{"one has no PVC", issued(rejects, withoutPVC), ""},
		{"one does not say what it trusts", issued(rejects, trusts("")), ""},
		{"the certificate of the peers is missing", issued(rejects, inState(1, Missing)), ""},
		{"the certificate of the servers is missing", issued(rejects, inState(2, Missing)), ""},
		{"the certificate of the controller is missing", issued(rejects, operator(lost)), "b"},
		{"the CA before has cross-signed the present one", issued(rejects, func(o *Observed) { o.CA.CrossSigned = true }), ""},
		{"it is unknown what to trust", issued(rejects, func(o *Observed) { o.Trust = "" }), ""},
		{"cert-manager has replaced the key of the CA, and a user can put it back", requested(rejects), ""},
		{"a user has replaced the certificates, and can put them back", static(rejects), ""},
		{"without TLS", &Observed{}, ""},
	} {
		var names []string
		for _, p := range test.o.RestartTogether() {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestFirstBlocking: only certificates that pods mount, or that the controller needs, keep
// members from being repaired.
func TestFirstBlocking(t *testing.T) {
	noOther := func(o *Observed) { o.CanAuthenticate = false }
	applications := func(o *Observed) {
		o.Certificates = append(o.Certificates, Certificate{Use: v1beta2.CertificateUseClient, Secret: "s-Client", State: NotOwned})
	}
	for _, test := range []struct {
		name string
		o    *Observed
		want string
	}{
		{"all are usable", issued(), ""},
		{"without TLS", &Observed{}, ""},
		{"that of the peers", issued(inState(1, Missing)), "s-Peer"},
		{"that of the servers", issued(inState(2, Unknown)), "s-Server"},
		{"the CA", issued(inState(0, Missing)), ""},
		{"the CA comes first", issued(inState(0, Unknown), inState(2, Missing)), "s-CA"},
		{"that of clients", issued(applications), ""},
		{"that of the controller, which has another certificate", issued(operator(lost)), ""},
		{"that of the controller, which has no other certificate", issued(operator(func(c *Certificate) { c.Secret, c.State = "s-Operator", Missing }), noOther), "s-Operator"},
	} {
		got := ""
		if c := test.o.FirstBlocking(); c != nil {
			got = c.Secret
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
