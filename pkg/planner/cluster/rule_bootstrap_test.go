// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

func TestRuleBootstrap(t *testing.T) {
	created := func(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseCreating }
	bootstrapPod := func(edit func(*Pod)) func(*Observed) {
		return func(o *Observed) {
			p := Pod{Name: "a", UID: "pod-a", Owned: true, Running: true, Version: testVersion}
			if edit != nil {
				edit(&p)
			}
			o.Pods = append(o.Pods, p)
		}
	}
	volumeOf := func(version string) func(*Observed) {
		return func(o *Observed) {
			withPVC("a", true)(o)
			o.PVCs[len(o.PVCs)-1].Version = version
		}
	}
	checkDecisions(t, []decision{
		{"unresponsive once the cluster was recorded", 1, "a", nil, "steady"},
		{"the bootstrap member", 3, "", edits(unresponsive), "bootstrap: CreateBootstrapPod a"},
		{"the bootstrap member and its volume", 3, "", edits(unresponsive, persist), "bootstrap: CreatePVC a, CreateBootstrapPod a"},
		{"the bootstrap member on the volume that it had", 3, "", edits(unresponsive, withPVC("a", true)), "bootstrap: CreateBootstrapPod a"},
		{"the bootstrap member on a volume of an older minor version", 3, "", edits(unresponsive, volumeOf("3.5.26")), "bootstrap: CreateBootstrapPod a 3.5.26"},
		{"the bootstrap member on a volume of another patch release", 3, "", edits(unresponsive, volumeOf("3.6.8")), "bootstrap: CreateBootstrapPod a"},
		{"the bootstrap member on a volume of a newer version", 3, "", edits(unresponsive, volumeOf("3.7.0")), "bootstrap: CreateBootstrapPod a"},
		{"the bootstrap member of an older version starts", 3, "", edits(unresponsive, volumeOf("3.5.26"), bootstrapPod(func(p *Pod) { p.Outdated, p.Running, p.Version = true, false, "3.5.26" })),
			"bootstrap: wait WaitingForBootstrapMember"},
		{"the bootstrap member is too new for its volume and does not run", 3, "", edits(unresponsive, volumeOf("3.5.26"), bootstrapPod(func(p *Pod) { p.Running = false })),
			"bootstrap: DeleteBootstrapPod a"},
		{"size 0 has no bootstrap member", 0, "", edits(unresponsive), "bootstrap: wait DesiredSizeZero"},
		{"a bootstrap member that has not responded stops, and keeps its volume", 0, "", edits(unresponsive, withPVC("a", true), bootstrapPod(nil)),
			"bootstrap: DeletePod a, wait DesiredSizeZero"},
		{"one without a volume stays", 0, "", edits(unresponsive, bootstrapPod(nil)), "bootstrap: wait DesiredSizeZero"},
		{"one that responds is recorded first", 0, "a:claim", edits(neverServed), "bootstrap: RecordBootstrap c0ffee"},
		{"no member joins a cluster of size 0", 0, "", edits(unresponsive, withPVC("a", true), func(o *Observed) {
			o.Prepared, o.PreparedPVCs = []Pod{{Name: "b", UID: "pod-b", Owned: true}}, []PVC{{Name: "b", UID: "pvc-b", Owned: true}}
		}), "bootstrap: DeletePrepared b, DeletePVC b, wait DesiredSizeZero"},
		{"the bootstrap member starts", 3, "", edits(unresponsive, bootstrapPod(nil)), "bootstrap: wait WaitingForBootstrapMember"},
		{"the bootstrap member goes away", 3, "", edits(unresponsive, bootstrapPod(func(p *Pod) { p.Terminating = true })), "bootstrap: wait WaitingForBootstrapMember"},
		{"the bootstrap member was evicted", 3, "", edits(unresponsive, bootstrapPod(func(p *Pod) { p.Finished = true })), "bootstrap: DeleteBootstrapPod a"},
		{"the bootstrap member waits for an image that is not wanted any more", 3, "", edits(unresponsive, bootstrapPod(func(p *Pod) { p.Outdated, p.Running = true, false })),
			"bootstrap: DeleteBootstrapPod a"},
		{"a bootstrap member that runs without a PVC is never deleted", 3, "", edits(unresponsive, bootstrapPod(func(p *Pod) { p.Outdated = true })), "bootstrap: wait WaitingForBootstrapMember"},
		{"the volume of the bootstrap member was deleted before it ran", 3, "", edits(unresponsive, persist, bootstrapPod(func(p *Pod) { p.Running = false })),
			"bootstrap: CreatePVC a, wait WaitingForBootstrapMember"},
		{"a bootstrap member that lists another member has bootstrapped the cluster", 3, "a b:unstarted,nopod", edits(neverServed, noQuorum, withoutLearners), "record: WriteRecord c0ffee"},
		{"the bootstrap member responds", 3, "a", edits(neverServed), "bootstrap: RecordBootstrap c0ffee"},
		{"the bootstrap member responds and its pod is deleted: no client may write to it", 3, "a:terminating", edits(neverServed), "bootstrap: wait WaitingForBootstrapMember"},
		{"a bootstrap member that responded and is lost before it was published", 3, "", edits(unresponsive, func(o *Observed) {
			o.Cluster.Status = v1beta2.ClusterStatus{
				Phase: v1beta2.ClusterPhaseCreating, MemberStatuses: []v1beta2.MemberStatus{{Name: "a", ID: "1"}},
			}
		}), "bootstrap: CreateBootstrapPod a"},
		{"not published to clients before the status says that it serves", 1, "a", edits(clients(Missing), created), "steady"},
		{"the cluster is published when the status says that it serves", 1, "a", edits(clients(Missing)), "steady: EnsureClientService"},
		{"not published to clients before it is recorded", 3, "", edits(unresponsive, bootstrapPod(nil), clients(Missing)), "bootstrap: wait WaitingForBootstrapMember"},
	})
}

// TestUnreachableBootstrapMember: a declaration with which the bootstrap member runs and does not respond is taken back.
func TestUnreachableBootstrapMember(t *testing.T) {
	bootstrapMember := func(edit func(*Observed, *Pod)) []func(*Observed) {
		return edits(func(o *Observed) {
			unresponsive(o)
			withPVC("a", true)(o)
			o.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: string(ReasonWaitingForBootstrapMember), Since: metav1.NewTime(o.Now.Add(-unresponsiveFor))}
			p := Pod{Name: "a", UID: "pod-a", Owned: true, Running: true, Version: testVersion, Template: "older"}
			edit(o, &p)
			o.Pods = append(o.Pods, p)
		})
	}
	const waits, again = "bootstrap: wait WaitingForBootstrapMember", "bootstrap: RecreatePod a " + testVersion + " unresponsive"
	checkDecisions(t, []decision{
		{"on its PVC", 3, "", bootstrapMember(func(*Observed, *Pod) {}), again},
		{"with another image", 3, "", bootstrapMember(func(o *Observed, p *Pod) { p.Template, p.Outdated = o.Template, true }), again},
		{"as it is declared", 3, "", bootstrapMember(func(o *Observed, p *Pod) { p.Template = o.Template }), waits},
		{"it rejects the certificates that took the place of lost ones", 3, "", bootstrapMember(func(o *Observed, p *Pod) {
			p.Template, p.Trust, o.Trust, o.CA = o.Template, "before", "now", &certificates.CA{}
		}), again},
		{"without a PVC its data would go", 3, "", bootstrapMember(func(o *Observed, _ *Pod) { o.PVCs = nil }), waits},
		{"the declared version may not read its data", 3, "", append(bootstrapMember(func(*Observed, *Pod) {}), wants("3.5.26")), waits},
		{"not before its container has had the time to respond", 3, "", bootstrapMember(func(o *Observed, p *Pod) { p.Started = o.Now.Add(-time.Second) }), waits},
		{"not before it has been waited for long", 3, "", bootstrapMember(func(o *Observed, _ *Pod) { o.Cluster.Status.BlockedBy.Since = metav1.NewTime(o.Now) }), waits},
		{"etcd rejects the controller", 3, "", bootstrapMember(func(o *Observed, _ *Pod) { o.Etcd.Denied = true }), waits},
		{"the controller could not query it", 3, "", bootstrapMember(func(o *Observed, _ *Pod) { o.Etcd.Unasked = true }), waits},
		{"it is about to end", 3, "", bootstrapMember(func(_ *Observed, p *Pod) { p.Terminating = true }), waits},
	})
}

// TestDeafBootstrapMember: a bootstrap member that never responds is Stalled, and the status says what a person can do.
func TestDeafBootstrapMember(t *testing.T) {
	older := edits(withPVC("a", true), wants("3.5.26"))
	for name, test := range map[string]struct {
		pod             Pod
		edits           []func(*Observed)
		message, remedy string
	}{
		"it runs":                            {Pod{Running: true}, nil, "runs, and does not respond to the controller: dial: timed out", "let the controller reach TCP port 2379"},
		"it was declared before":             {Pod{Running: true, Template: "older"}, nil, "runs, and does not respond", "delete the pod"},
		"an older minor version is declared": {Pod{Running: true, Outdated: true}, older, "runs, and does not respond", "Its data may be too new for 3.5.26: set spec.version to a release of the minor version of " + testVersion},
		"it does not run":                    {Pod{}, nil, "does not respond yet", "kubectl describe pod"},
		"no node takes it":                   {Pod{Waiting: "Unschedulable: 0/3 nodes"}, nil, "no node takes the pod: 0/3 nodes", "Add a node"},
		"its node does not end it":           {Pod{Terminating: true, EndsBy: testNow, Node: "n1"}, nil, "its node n1 has not reported", "delete its Node object"},
	} {
		p := test.pod
		p.Name, p.UID, p.Owned, p.Version = "a", "pod-a", true, testVersion
		given := func(o *Observed) { o.Pods, o.Etcd.Err = append(o.Pods, p), "dial: timed out" }
		o := observed(t, 3, "", append(edits(unresponsive, given), test.edits...)...)
		o.Now = testNow.Add(waits.Late)
		o.Cluster.Status.BlockedBy = statusOf(o).BlockedBy
		o.Now = o.Now.Add(waits.Late)
		status := statusOf(o)
		if b := status.BlockedBy; !strings.Contains(b.Message, test.message) || !strings.Contains(b.Unblock, test.remedy) || strings.Contains(b.Unblock, noActionNeeded) {
			t.Errorf("%s: %s. %s", name, b.Message, b.Unblock)
		}
		if find(status, v1beta2.ClusterConditionStalled) == nil {
			t.Errorf("%s: not Stalled", name)
		}
	}
}

// TestBootstrappedOnce goes through every place that says that a cluster has served:
// each alone must be enough to never make a bootstrap member again.
func TestBootstrappedOnce(t *testing.T) {
	status := func(s v1beta2.ClusterStatus) func(*Observed) {
		return func(o *Observed) { o.Cluster.Status = s }
	}
	for name, proof := range map[string]func(*Observed){
		"record":         func(o *Observed) { o.Record.ClusterID = "c0ffee" },
		"record unknown": func(o *Observed) { o.Record.ClusterID = unknownClusterID },
		"running":        status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning}),
		"failed":         status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseFailed}),
		"hibernated":     status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseHibernated}),
		"client service": clients(Current),
		"another pod":    pod("b", true),
		"another PVC":    withPVC("b", true),
	} {
		for _, recorded := range []bool{true, false} {
			o := observed(t, 3, "", unresponsive, proof)
			if !recorded {
				o.Record = Record{}
				proof(&o)
			}
			plan := Decide(o)
			for _, a := range plan.Actions {
				switch a := a.(type) {
				case CreateBootstrapPod:
					t.Errorf("%s: a second bootstrap member: %s", name, describe(plan))
				case WriteRecord:
					if a.Record.ClusterID == "" {
						t.Errorf("%s: a second bootstrap member: %s", name, describe(plan))
					}
				}
			}
		}
	}
}
