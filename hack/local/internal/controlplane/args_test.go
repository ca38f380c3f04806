// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

var testLayout = layout.Layout{Cache: "/cache", State: "/state"}

func TestAPIServerArgs(t *testing.T) {
	args := apiServerArgs(testLayout, Options{TolerationSeconds: 7, Families: topology.Dual})
	for _, want := range []string{
		"--default-not-ready-toleration-seconds=7",
		"--default-unreachable-toleration-seconds=7",
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=/state/pki/front-proxy-client.crt",
		"--requestheader-client-ca-file=/state/pki/front-proxy-ca.crt",
		"--advertise-address=172.30.0.2",
		"--service-cluster-ip-range=10.96.0.0/16,fd5e:7cd0:e01:96::/112",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s", want)
		}
	}
	isAudit := func(arg string) bool { return strings.HasPrefix(arg, "--audit") }
	if slices.ContainsFunc(args, isAudit) {
		t.Error("an audit log without a request")
	}
	if args := apiServerArgs(testLayout, Options{Audit: true}); !slices.Contains(args, "--audit-log-path=/state/logs/audit.log") {
		t.Error("no audit log")
	}
}

// Up compares arguments with those of what runs, so no flag may be given twice
// and the order must be stable.
func TestArgsAreStable(t *testing.T) {
	for name, build := range map[string]func() []string{
		Etcd:              func() []string { return etcdArgs(testLayout) },
		APIServer:         func() []string { return apiServerArgs(testLayout, Options{Audit: true}) },
		ControllerManager: func() []string { return controllerManagerArgs(testLayout, Options{}) },
		Scheduler:         func() []string { return schedulerArgs(testLayout) },
	} {
		args := build()
		if !slices.Equal(args, build()) {
			t.Errorf("%s: the arguments differ from call to call", name)
		}
		if args[0] != name {
			t.Errorf("%s: is called %s", name, args[0])
		}
		seen := map[string]bool{}
		for _, arg := range args[1:] {
			flag, _, ok := strings.Cut(arg, "=")
			if !ok || !strings.HasPrefix(flag, "--") || seen[flag] {
				t.Errorf("%s: bad or repeated flag %s", name, arg)
			}
			seen[flag] = true
		}
	}
}

// The flags of a cluster of one family must not name the other.
func TestArgsOfOneFamily(t *testing.T) {
	for families, wants := range map[topology.Families][]string{
		topology.IPv4: {"--advertise-address=172.30.0.2", "--service-cluster-ip-range=10.96.0.0/16", "--cluster-cidr=10.244.0.0/16"},
		topology.IPv6: {"--advertise-address=fd5e:7cd0:e01::2", "--service-cluster-ip-range=fd5e:7cd0:e01:96::/112", "--cluster-cidr=fd5e:7cd0:e01:100::/56"},
	} {
		options := Options{Families: families}
		args := append(apiServerArgs(testLayout, options), controllerManagerArgs(testLayout, options)...)
		for _, want := range wants {
			if !slices.Contains(args, want) {
				t.Errorf("%s: no %s", families, want)
			}
		}
	}
}
