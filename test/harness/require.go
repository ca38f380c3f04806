// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "os"

// NightlyVariable has the tests run that `make test` leaves out: `make nightly` sets it.
const NightlyVariable = "ETCD_OPERATOR_NIGHTLY"

// IsNightly is true if the tests run that `make test` leaves out.
func IsNightly() bool { return os.Getenv(NightlyVariable) != "" }

// Need is something that a test needs and that only the local Kubernetes (`make up`) offers.
type Need string

// Values of Need.
const (
	Nodes       Need = "nodes that it can stop, cut off and run commands on"
	NodeImages  Need = "nodes that it can load images on"
	ObjectStore Need = "an object store, whose image it loads on the nodes"
	PodNetwork  Need = "the addresses of pods and nodes to be reachable from this machine"
	Programs    Need = "the programs in bin/ on a machine that reaches the addresses of pods"
	FixedVolume Need = "volumes whose size nothing else changes"
)

// skipper is a test that can be skipped.
type skipper interface {
	Helper()
	Skipf(format string, args ...any)
}

// RequireNightly skips a test of minutes, most of whose promises shorter tests check as well. The
// table in docs/testing.md names both.
func RequireNightly(t skipper) {
	t.Helper()
	if !IsNightly() {
		t.Skipf("this test takes minutes and runs in `make nightly`, or with %s=yes", NightlyVariable)
	}
}

// IsLocal is true on the local Kubernetes.
func (e *Environment) IsLocal() bool { return e.Local != "" }

// RequireLocal skips a test that needs something that only the local Kubernetes offers. It is
// the one place that decides; a test calls it before it makes anything.
func (e *Environment) RequireLocal(t skipper, need Need) {
	t.Helper()
	if !e.IsLocal() {
		t.Skipf("this test needs %s: only the local Kubernetes offers that (`make e2e`)", need)
	}
}
