// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const swappedImage = "elsewhere/etcd"

// round is the last round in which images were put back, and how long ago it began.
func round(number int, ago time.Duration) func(*Observed) {
	return func(o *Observed) { o.Record.PutBack = resources.PutBackRecord{Round: number, Since: o.Now.Add(-ago)} }
}

// setAgain gives the pods of members that were created in the last round an image that something else has set.
func setAgain(names ...string) func(*Observed) {
	return func(o *Observed) {
		for _, name := range names {
			p := podByName(o.Pods, name)
			p.Image, p.ImageName, p.PutBack = resources.ImageChanged, swappedImage, o.Record.PutBack.String()
			if p.Running {
				p.Started = o.Record.PutBack.Since
			}
		}
	}
}

// degradedFor has the last status report for how long the named voters have not served; none named: all that do not.
func degradedFor(d time.Duration, voters ...string) func(*Observed) {
	return func(o *Observed) {
		var named []*Member
		for _, m := range listVoters(o.Etcd.Members) {
			if slices.Contains(voters, m.Name) || len(voters) == 0 && m.Health != Healthy {
				named = append(named, m)
			}
		}
		at := o.Now.Add(-d).Format(time.RFC3339)
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, LastTransitionTime: at, LastUpdateTime: at,
			Reason: string(ReasonMembersUnhealthy), Message: doNotServe + names(named),
		})
	}
}

// preparedWith gives the prepared pod an image that something else has set.
func preparedWith(image string) func(*Observed) {
	return func(o *Observed) {
		prepareMissing(o)
		p := &o.Prepared[0]
		p.Image, p.ImageName, p.PutBack = resources.ImageChanged, image, o.Record.PutBack.String()
	}
}

// TestImageThatIsSetAgain is about images that something else sets again each time after they were put back.
func TestImageThatIsSetAgain(t *testing.T) {
	const before, next, three = testVersion, "3.7.0", "a:claim b:claim c:claim"
	first := func(o *Observed) { podByName(o.Pods, "b").PutBack = "" }
	late := func(o *Observed) { podByName(o.Pods, "b").Started = o.Record.PutBack.Since.Add(2 * time.Hour) }
	young := func(o *Observed) { podByName(o.Pods, "c").Made = o.Now.Add(-time.Minute) }
	older := func(o *Observed) { podByName(o.Pods, "c").Image = resources.ImageChanged }
	everywhere := func(o *Observed) { podByName(o.Pods, "a").ImageName = swappedImage }
	checkDecisions(t, []decision{
		{"once more, a little later", 3, three, edits(round(1, time.Minute), setAgain("b")), "rollout: RecordPutBack 2, RecreatePod b " + before},
		{"not at once", 3, three, edits(round(1, time.Second), setAgain("b")), "rollout: wait ImageRewritten"},
		{"a third time, and etcd is as declared", 3, three, edits(round(2, time.Hour), setAgain("b")), "rollout: wait ImageRewritten"},
		{"the only member", 1, "a:claim", edits(round(2, time.Hour), setAgain("a")), "rollout: wait ImageRewritten"},
		{"without a PVC", 3, "a b c", edits(round(2, time.Hour), setAgain("a", "b", "c")), "rollout: wait ImageRewritten"},
		{"another version of etcd", 3, "a:claim b:claim,v=3.7.3 c:claim", edits(round(2, time.Hour), setAgain("b")), "rollout: RecordPutBack 3, RecreatePod b " + before},
		{"another version of etcd, after a pause that grows", 3, "a:claim b:claim,v=3.7.3 c:claim", edits(round(6, 5*time.Minute), setAgain("b")), "rollout: wait ImageRewritten"},
		{"a member that has not served for long", 3, "a:claim b:claim,sick c:claim", edits(round(2, time.Hour), setAgain("b"), degradedFor(time.Minute)), "repair: RecordPutBack 3, RecreatePod b " + before},
		{"a member that has just stopped to serve", 3, "a:claim b:claim,sick c:claim", edits(round(2, time.Hour), setAgain("b")), "rollout: wait ImageRewritten"},
		{"hours after the last time, and its container has just restarted", 3, three, edits(round(2, 3*time.Hour), setAgain("b"), late), "rollout: wait ImageRewritten"},
		{"hours after the last time, and its container does not run", 3, "a:claim b:claim,down c:claim", edits(round(2, 3*time.Hour), setAgain("b")), "repair: RecordPutBack 3, UpgradePod b " + before + " idle"},
		{"hours after the last time it is forgotten", 3, three, edits(round(2, 3*time.Hour), ranFor(2*time.Hour)), "steady: RecordPutBack 0"},
		{"hours after the last time, and one pod is young", 3, three, edits(round(2, 3*time.Hour), ranFor(2*time.Hour), young), "steady"},
		{"a new mistake", 3, three, edits(image("b", resources.ImageChanged), ranFor(2*time.Hour)), "rollout: RecordPutBack 1, RecreatePod b " + before},
		{"a pod from before the round", 3, three, edits(round(2, time.Hour), setAgain("b"), older), "rollout: RecreatePod c " + before},
		{"a pod from before a round for members that fail", 3, three, edits(round(3, time.Hour), older), "rollout: wait ImageRewritten"},
		{"a container that does not run, once more in place", 3, "a:claim b:claim,down c:claim", edits(round(1, time.Minute), setAgain("b")), "repair: RecordPutBack 2, UpgradePod b " + before + " idle"},
		{"a container that does not run, not at once", 3, "a:claim b:claim,down c:claim", edits(round(1, time.Second), setAgain("b")), "rollout: wait ImageRewritten"},
		{"a container that does not run, for the first time in this round", 3, "a:claim b:claim,down c:claim", edits(round(1, time.Second), setAgain("b"), first), "repair: UpgradePod b " + before + " idle"},
		{"another version is declared", 3, three, edits(round(2, time.Hour), setAgain("a", "b", "c"), wants(next)), "rollout: UpgradePod b " + next},
		{"another member must restart", 3, "a:claim b:claim c:claim,stale", edits(round(2, time.Hour), setAgain("a", "b")), "rollout: RecreatePod c " + before},
		{"a request to restart", 3, "a:claim,unasked b:claim,unasked c:claim,unasked", edits(asks, round(2, time.Hour), setAgain("a", "b", "c")), "rollout: RecreatePod b " + before},
		{"a prepared pod, whose image a member runs", 3, "a b", edits(round(2, time.Hour), everywhere, preparedWith(swappedImage)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a prepared pod, whose image no member runs", 3, "a b", edits(round(2, time.Hour), preparedWith(swappedImage)), "scale-up: RecordPutBack 3, DeletePrepared c-new, PreparePod c-new, wait WaitingForPod"},
		{"a prepared pod, not at once", 3, "a b", edits(round(2, time.Second), preparedWith(swappedImage)), "scale-up: wait ImageRewritten"},
	})
}

// TestMembersDoNotRestartForEver plays hours in which something sets the image of the only member again each
// time, seconds after its pod was created.
func TestMembersDoNotRestartForEver(t *testing.T) {
	for _, test := range []struct {
		name, member string
		most         int
	}{
		{"etcd is as declared", "a:claim", 2},
		{"another version of etcd", "a:claim,v=3.7.3", 20},
		{"a container that does not start", "a:claim,down", 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, 1, test.member, image("a", resources.ImageChanged), ranFor(settledAfter))
			restarts := 0
			for end := o.Now.Add(6 * time.Hour); o.Now.Before(end); o.Now = o.Now.Add(5 * time.Second) {
				pod := podByName(o.Pods, "a")
				for _, action := range Decide(o).Actions {
					switch a := action.(type) {
					case RecordPutBack:
						o.Record.PutBack = a.PutBack
					case RecreatePod:
						restarts++
						pod.PutBack, pod.Started = o.Record.PutBack.String(), o.Now.Add(10*time.Second)
					case UpgradePod:
						restarts++
						pod.PutBack = o.Record.PutBack.String()
					}
				}
			}
			if restarts == 0 || restarts > test.most {
				t.Errorf("the image was put back %d times, want at most %d", restarts, test.most)
			}
		})
	}
}

// TestStatusOfAnImageThatIsSetAgain reads what the status says of it.
func TestStatusOfAnImageThatIsSetAgain(t *testing.T) {
	o := observed(t, 3, "a:claim b:claim c:claim", round(2, time.Hour), setAgain("b"))
	o.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: string(ReasonImageRewritten), Since: metav1.NewTime(o.Now.Add(-time.Hour))}
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Unblock != rowOf(ReasonImageRewritten).Remedy ||
		b.Message != "something else than this controller has set the image of pod b to elsewhere/etcd again after it was put back: etcd in it is as declared, so the image stays" {
		t.Errorf("the status is blocked by %+v", b)
	}
	if !slices.ContainsFunc(status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ConditionStalled && c.Status == corev1.ConditionTrue && c.Reason == string(ReasonImageRewritten)
	}) {
		t.Errorf("the cluster is not Stalled: %+v", status.Conditions)
	}
}
