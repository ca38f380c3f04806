// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// TestDataOnLostNodeIsDoomed makes sure that the end of the data of a member counts from the moment
// at which its node is lost and its PVC is deleted, whichever comes last.
func TestDataOnLostNodeIsDoomed(t *testing.T) {
	lose := func(w *faults.World) { w.CrashNode(w.Runs[0].Node, 0) }
	crash := func(w *faults.World) { w.CrashNode(w.Runs[0].Node, time.Minute) }
	deletePVC := func(w *faults.World) {
		if err := w.Store.DeleteObject(kubernetes.KindPVC, w.Runs[0].Name(), metav1.Preconditions{}); err != nil {
			w.Violated("L1", "the PVC is not deleted: %v", err)
		}
	}
	for name, test := range map[string]struct {
		faults []func(*faults.World)
		want   bool
	}{
		"the node is lost, then the PVC is deleted":               {[]func(*faults.World){lose, deletePVC}, true},
		"the PVC is deleted, then the node is lost":               {[]func(*faults.World){deletePVC, lose}, true},
		"the PVC is deleted, and the node is down for a minute":   {[]func(*faults.World){crash, deletePVC}, false},
		"the node is lost, and the volume is attached to another": {[]func(*faults.World){lose}, false},
		"the PVC is deleted, and its pod runs":                    {[]func(*faults.World){deletePVC}, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := schedules.OfSize(1).WithVolumes()
			w := faults.New(&plan, timeline.NewStats(), false)
			w.StartManager(0)
			w.After(0, w.Beat)
			w.CreateCluster()
			reach(w, w.Goal)
			data := w.Etcd.Processes[0].Dir
			for _, f := range test.faults {
				f(w)
			}
			if w.Violation != nil || data.Doomed != test.want {
				t.Errorf("doomed: %t, want %t; violation %v", data.Doomed, test.want, w.Violation)
			}
		})
	}
}
