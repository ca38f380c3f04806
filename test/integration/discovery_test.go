// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-operator/etcd-operator/test/oldest"
)

var updateDiscovery = flag.Bool("update-discovery", false, "record the discovery document of the kube-apiserver as that of the oldest supported Kubernetes")

// TestRecordedDiscovery compares the recorded discovery document of the oldest supported
// Kubernetes with the real one.
func TestRecordedDiscovery(t *testing.T) {
	live, err := oldest.Record(t.Context(), env.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	if *updateDiscovery {
		if err := live.Save("../oldest/testdata/discovery.json"); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := oldest.Load()
	if err != nil {
		t.Fatal(err)
	}
	if minorOf(live.Kubernetes) != minorOf(recorded.Kubernetes) {
		t.Skipf("the kube-apiserver is %s: the document is that of %s", live.Kubernetes, recorded.Kubernetes)
	}
	if diff := cmp.Diff(recorded, live); diff != "" {
		t.Errorf("the recorded document differs from that of the kube-apiserver (hack/update-discovery.sh records it again):\n%s", diff)
	}
}

func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
