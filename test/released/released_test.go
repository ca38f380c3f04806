// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package released

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var update = flag.String("update", "", "record what today's code makes as the objects of this release, such as v0.2.0")

// completes is what the controller of today writes once for a cluster of a release, by its name.
// It must restart nothing.
var completes = map[string][]planner.Action{
	// The Service repeats which recoveries have begun.
	"v0.1.0/recovered": {planner.RepairPeerService{}},
}

// TestReleasedObjects has the controller observe each cluster of each release. It must find nothing
// else to do. It is not parallel, as it may write what the other test reads.
func TestReleasedObjects(t *testing.T) {
	if *update != "" {
		for _, c := range cases() {
			write(t, filepath.Join("testdata", *update, c.name), c.record(t))
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "v*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < len(cases()) {
		t.Fatalf("testdata has %d clusters of releases; each release has %d", len(files), len(cases()))
	}
	for _, file := range files {
		path := strings.TrimSuffix(file, ".yaml")
		name := strings.TrimPrefix(path, "testdata"+string(os.PathSeparator))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := read(t, path)
			plan, status := w.reconcile(t)
			plan.Actions = slices.DeleteFunc(plan.Actions, w.namesNamespace)
			if describe(plan.Actions) != describe(completes[name]) || plan.Wait != nil || plan.Operation != nil || plan.Draining != "" {
				t.Errorf("the rule %s plans for a cluster at rest: actions %s, wait %+v, operation %+v, draining %q",
					plan.Rule, describe(plan.Actions), plan.Wait, plan.Operation, plan.Draining)
			}
			before := w.cluster.Status
			if status.Phase != before.Phase || len(status.MemberStatuses) != len(before.MemberStatuses) || status.CurrentVersion != before.CurrentVersion {
				t.Errorf("status %+v, and before %+v", status, before)
			}
			for i := range before.Conditions {
				was := &before.Conditions[i]
				if now := conditionOf(status, was.Type); now.Status != was.Status {
					t.Errorf("condition %s is %q (%s: %s), and was %q", was.Type, now.Status, now.Reason, now.Message, was.Status)
				}
			}
		})
	}
}

// TestReleasedObjectsThatDiffer shows that the test above notices what it is for: a pod that differs
// from what the controller of today would make is replaced.
func TestReleasedObjectsThatDiffer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"a pod has another template hash": func(w *world) { w.pods()[0].Annotations["etcd.database.coreos.com/template"] = "other" },
		"a pod has another owner":         func(w *world) { w.pods()[0].OwnerReferences = nil },
		"the record is empty":             func(w *world) { w.find("ConfigMap", "c-record").(*corev1.ConfigMap).Data = nil },
		"the spec declares a variable": func(w *world) {
			w.cluster.Spec.Pod.EtcdEnv = []corev1.EnvVar{{Name: "ETCD_LOG_LEVEL", Value: "debug"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := read(t, filepath.Join("testdata", "v0.1.0", "volumes"))
			change(w)
			if plan, _ := w.reconcile(t); len(plan.Actions) == 0 && plan.Wait == nil {
				t.Errorf("the rule %s plans nothing", plan.Rule)
			}
		})
	}
}

// namesNamespace is true for the action that writes on a PVC the namespace of its cluster, which no earlier release wrote.
func (w *world) namesNamespace(a planner.Action) bool {
	repair, is := a.(planner.RepairPVC)
	if !is {
		return false
	}
	pvc, found := w.find("PersistentVolumeClaim", repair.Name).(*corev1.PersistentVolumeClaim)
	return found && pvc.Annotations[resources.AnnotationClusterNamespace] == ""
}

func conditionOf(status *v1beta2.ClusterStatus, t v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}

func describe(actions []planner.Action) string {
	parts := make([]string, 0, len(actions))
	for _, a := range actions {
		parts = append(parts, fmt.Sprintf("%T%+v", a, a))
	}
	return strings.Join(parts, ", ")
}
