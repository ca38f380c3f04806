// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

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
