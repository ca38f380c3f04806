// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import "testing"

func TestParseDestination(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8",
		"10.1.2.3":   "10.1.2.3/32",
	} {
		got, err := parseDestination(in)
		if err != nil || got.String() != want {
			t.Errorf("parseDestination(%q) = %v, %v, want %s", in, got, err, want)
		}
	}
	if got, err := parseDestination("default"); err == nil {
		t.Errorf("the default route is %v: it would conflict with everything", got)
	}
}
