// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "testing"

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
