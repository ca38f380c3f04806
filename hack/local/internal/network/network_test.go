// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

func TestParseDestination(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8",
		"10.1.2.3":   "10.1.2.3/32",
		"fd00::/64":  "fd00::/64",
		"fd00::7":    "fd00::7/128",
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

func TestCommands(t *testing.T) {
	for got, want := range map[string]string{
		address(topology.V4, "172.30.0.2", "eolbr0"):       "addr replace 172.30.0.2/24 dev eolbr0",
		address(topology.V6, "fd5e:7cd0:e01::2", "eolbr0"): "addr replace fd5e:7cd0:e01::2/64 dev eolbr0 nodad",
		defaultRoute(topology.V4):                          "route replace 0.0.0.0/0 via 172.30.0.1",
		defaultRoute(topology.V6):                          "route replace ::/0 via fd5e:7cd0:e01::1",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
