// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ranFor says for how long the container of each member that runs has run.
func ranFor(d time.Duration) func(*Observed) {
	return func(o *Observed) {
		for i := range o.Pods {
			if p := &o.Pods[i]; p.Running {
				p.Started = o.Now.Add(-d)
			}
		}
	}
}

// image says where the image of the pod of a member comes from.
func image(name string, state resources.ImageState) func(*Observed) {
	return func(o *Observed) { podByName(o.Pods, name).Image = state }
}

// TestImageOfAnotherVersion is about members whose etcd is not the one that their pods were made for.
func TestImageOfAnotherVersion(t *testing.T) {
	const next, before = "3.7.0", testVersion
	long, changed, unconfirmed := ranFor(settledAfter), resources.ImageChanged, resources.ImageUnconfirmed
	checkDecisions(t, []decision{
		{"the kubelet may restart it", 3, "a b:podv=3.7.0 c", edits(wants(next), ranFor(settledAfter-time.Second)), "rollout: wait WaitingForMember"},
		{"the kubelet has restarted it, and its image holds the old version", 3, "a b:podv=3.7.0 c", edits(wants(next), long), "rollout: wait ImageVersion"},
		{"the pod of another member must be made again, which keeps its version", 3, "a:claim b:claim,podv=3.7.0 c:claim,stale", edits(wants(next), long), "rollout: RecreatePod c " + before},
		{"the pod of another member that does not serve must be made again", 3, "a:claim b:claim,podv=3.7.0 c:claim,stale,sick", edits(wants(next), long), "rollout: RecreatePod c " + before},
		{"someone has set the image of another member", 3, "a:claim b:claim,podv=3.7.0 c:claim", edits(wants(next), long, image("c", changed)), "rollout: RecordPutBack 1, RecreatePod c " + before},
		{"another member does not serve, and the rest waits", 3, "a:claim b:claim,podv=3.7.0 c:claim,sick", edits(wants(next), long), "rollout: wait ImageVersion"},
		{"two have that image, and the pod of the third must be made again", 3, "a:claim,stale b:claim,podv=3.7.0 c:claim,podv=3.7.0", edits(wants(next), long), "rollout: MoveLeader a>b"},
		{"the declaration is taken back", 3, "a b:podv=3.7.0 c", edits(long), "rollout: UpgradePod b " + before},
		{"another version is declared instead", 3, "a b:podv=3.6.99 c", edits(wants(next), long), "rollout: UpgradePod b " + next},
		{"the only member", 1, "a:podv=3.7.0", edits(wants(next), long), "rollout: wait ImageVersion"},
		{"the only member, and the declaration is taken back", 1, "a:podv=3.7.0", edits(long), "rollout: UpgradePod a " + before + " outage"},
		{"the image of every member holds a newer version", 3, "a:v=3.6.16 b:v=3.6.16 c:v=3.6.16", edits(long), "rollout: wait ImageVersion"},
		{"the pod is called running because of the container before", 3, "a b:podv=3.7.0,restarting c", edits(wants(next), long), "rollout: wait WaitingForMember"},
		{"a cluster with such images grows", 3, "a:v=3.6.16 b:v=3.6.16", edits(long), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a cluster with such images shrinks", 1, "a:v=3.6.16 b:v=3.6.16", edits(long), "scale-down: LabelPod b leaving"},

		{"someone has set another image", 3, "a:claim b:claim,v=3.7.3 c:claim", edits(long, image("b", changed)), "rollout: RecordPutBack 1, RecreatePod b " + before},
		{"the kubelet may restart it once more", 3, "a:claim b:claim,v=3.7.3 c:claim", edits(ranFor(time.Second), image("b", changed)), "rollout: RecordPutBack 1, wait WaitingForMember"},
		{"someone has set another image of the same version", 3, "a:claim b:claim c:claim", edits(image("b", changed)), "rollout: RecordPutBack 1, RecreatePod b " + before},
		{"someone has set the image of the leader", 3, "a:claim b:claim c:claim", edits(image("a", changed)), "rollout: RecordPutBack 1, MoveLeader a>b"},
		{"someone has set the image of the only member", 1, "a:claim", edits(image("a", changed)), "rollout: RecordPutBack 1, RecreatePod a " + before + " outage"},
		{"without a PVC another member replaces it", 3, "a b c", edits(image("b", changed)), "scale-up: RecordPutBack 1, AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"someone has set an image that does not exist", 3, "a b:down c", edits(image("b", changed)), "repair: RecordPutBack 1, UpgradePod b " + before + " idle"},
		{"the same without a quorum", 1, "a:down", edits(noQuorum, lastSaid(before), image("a", changed)), "repair: RecordPutBack 1, UpgradePod a " + before + " idle"},
		{"someone has set an image while another member does not serve", 3, "a:sick,claim b:claim c:claim", edits(image("b", changed)), "rollout: RecordPutBack 1, wait WaitingForMember"},
		{"someone has set the image of a joining member", 3, "a b d:learner,unstarted,down", edits(image("d", changed)), "joining: RecordPutBack 1, UpgradePod d " + before + " idle"},
		{"another version is declared at the same time", 3, "a:claim b:claim c:claim", edits(wants(next), image("b", changed)), "rollout: RecordPutBack 1, RecreatePod b " + next},
		{"a policy or a person, in a pod of an earlier release", 3, "a b c", edits(long, image("b", unconfirmed)), "steady"},
		{"the same, and it does not run", 3, "a b:down c", edits(image("b", unconfirmed)), "steady"},
		{"the same, and it runs another version", 3, "a:claim b:claim,v=3.7.3 c:claim", edits(long, image("b", unconfirmed)), "rollout: RecordPutBack 1, RecreatePod b " + before},
	})
}

// TestAdmittedImageIsNoted: a pod that does not say which image was admitted gets the note, if nothing else can
// have set that image.
func TestAdmittedImageIsNoted(t *testing.T) {
	unnoted := image("b", resources.ImageUnnoted)
	checkDecisions(t, []decision{
		{"a new pod", 3, "a b c", append(made("b", resources.NoteWithin-time.Second), unnoted), "steady: LabelPod b voter"},
		{"an old pod, whose image something else may have set", 3, "a:claim b:claim c:claim", append(made("b", resources.NoteWithin), unnoted), "rollout: RecordPutBack 1, RecreatePod b " + testVersion},
		{"an old pod whose image cannot be pulled", 3, "a b:down c", append(made("b", resources.NoteWithin), unnoted), "repair: RecordPutBack 1, UpgradePod b " + testVersion + " idle"},
	})
}

// TestPreparedPodWithAnotherImage: no member is added for it.
func TestPreparedPodWithAnotherImage(t *testing.T) {
	checkDecisions(t, []decision{
		{"a prepared pod whose image someone has set", 3, "a b", edits(func(o *Observed) {
			prepareMissing(o)
			o.Prepared[0].Image = resources.ImageChanged
		}), "scale-up: RecordPutBack 1, DeletePrepared c-new, PreparePod c-new, wait WaitingForPod"},
	})
}

// TestImageOfAPolicyThatCannotBePulled: a policy that was corrected meanwhile changes new pods only.
func TestImageOfAPolicyThatCannotBePulled(t *testing.T) {
	waits := func(why string, ago time.Duration) func(*Observed) {
		return func(o *Observed) {
			p := podByName(o.Pods, "b")
			p.Waiting, p.Made = why, o.Now.Add(-ago)
		}
	}
	const long = preparedPatience + time.Second
	checkDecisions(t, []decision{
		{"for long", 3, "a:claim b:claim,policy,down c:claim", edits(waits("ImagePullBackOff: mirror/etcd", long)), "repair: RecreatePod b " + testVersion + " idle"},
		{"not yet for long", 3, "a:claim b:claim,policy,down c:claim", edits(waits("ImagePullBackOff: mirror/etcd", preparedPatience)), "steady"},
		{"it does not run for another reason", 3, "a:claim b:claim,policy,down c:claim", edits(waits("CrashLoopBackOff", long)), "steady"},
		{"no policy has changed it", 3, "a:claim b:claim,down c:claim", edits(waits("ImagePullBackOff: quay.io/etcd", long)), "steady"},
		{"without a PVC", 3, "a b:policy,down c", edits(waits("ImagePullBackOff: mirror/etcd", long)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"without a quorum, and for hours not Ready", 3, "a:claim,down b:claim,policy,down c:claim,down", edits(noQuorum, notReadyFor(6*time.Hour), waits("ImagePullBackOff: mirror/etcd", long)), "repair: RecreatePod b " + testVersion + " idle"},
		{"a prepared pod", 3, "a b", edits(func(o *Observed) {
			prepareMissing(o)
			p := &o.Prepared[0]
			p.Running, p.FromPolicy, p.Waiting, p.Made = false, true, "ErrImagePull: mirror/etcd", o.Now.Add(-long)
		}), "scale-up: DeletePrepared c-new, PreparePod c-new, wait WaitingForPod"},
		{"the init container of a prepared pod", 3, "a b", edits(func(o *Observed) {
			prepareMissing(o)
			p := &o.Prepared[0]
			p.Running, p.OtherInitImage, p.Waiting, p.Made = false, true, "ErrImagePull: mirror/operator", o.Now.Add(-long)
		}), "scale-up: DeletePrepared c-new, PreparePod c-new, wait WaitingForPod"},
	})
}

// TestStatusOfAnImageOfAnotherVersion reads what the status says of it.
func TestStatusOfAnImageOfAnotherVersion(t *testing.T) {
	o := observed(t, 3, "a b:podv=3.7.0 c", wants("3.7.0"), ranFor(time.Hour))
	podByName(o.Pods, "b").ImageName = "registry/etcd:v3.7.0"
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Reason != string(ReasonImageVersion) || b.Unblock == "" ||
		b.Message != "member b runs etcd 3.6.11: its image registry/etcd:v3.7.0 does not hold 3.7.0" {
		t.Errorf("the status is blocked by %+v", b)
	}
	o = observed(t, 3, "a b:v=3.7.3 c", image("b", resources.ImageChanged), ranFor(time.Hour))
	c := upgrading(&o, Plan{})
	if c.Status != corev1.ConditionTrue || c.Message != "from 3.7.3 to 3.6.11" {
		t.Errorf("the condition is %s: %s", c.Status, c.Message)
	}
	if lacking := strings.Join(listLacking(&o), " "); !strings.Contains(lacking, "b (pod not as declared)") {
		t.Errorf("members that lack something: %s", lacking)
	}
}

// TestWritesThatMayRestart: another voter does not serve. The pod of a voter is written only if no policy has
// changed the image of another pod to one that this pod does not have.
func TestWritesThatMayRestart(t *testing.T) {
	t.Parallel()
	rewritten := func(names ...string) func(*Observed) {
		return func(o *Observed) {
			for _, name := range names {
				p := podByName(o.Pods, name)
				p.ImageName, p.FromPolicy = "mirror/etcd", true
			}
		}
	}
	for name, test := range map[string]struct {
		members string
		edits   []func(*Observed)
		want    bool
	}{
		"no policy":                                 {"a b:restarting c", nil, true},
		"a policy, and all serve":                   {"a b c", edits(rewritten("b")), true},
		"a policy, and another restarts":            {"a b:restarting c", edits(rewritten("b")), false},
		"a policy, and another is down":             {"a b c:down", edits(rewritten("b")), false},
		"a policy, and another responds not yet":    {"a b:sick c", edits(rewritten("b")), false},
		"an image that nothing has noted yet":       {"a b:sick c", edits(image("b", resources.ImageChanged), func(o *Observed) { o.Pods[1].ImageName = "mirror/etcd" }), false},
		"a policy that has changed this pod, too":   {"a b:restarting c", edits(rewritten("a", "b", "c")), true},
		"a policy that has changed this pod before": {"a b:down c", edits(rewritten("a", "b"), func(o *Observed) { o.Pods[0].ImageName = "mirror/etcd:before" }), true},
		"a policy, and this member is down":         {"a:down b c", edits(rewritten("b")), true},
		"a policy, and no quorum":                   {"a b:down c:down", edits(noQuorum, rewritten("b")), false},
	} {
		o := observed(t, 3, test.members, append(test.edits, func(o *Observed) {
			o.Unlabeled = []Object{{KindPod, "a", "pod-a"}}
			podByName(o.Pods, "a").Role = PodLearner
		})...)
		wrote := map[string]bool{}
		for _, a := range Decide(o).Actions {
			switch a := a.(type) {
			case LabelObject:
				wrote["mark"] = true
			case LabelPod:
				wrote["role"] = wrote["role"] || a.Name == "a"
			}
		}
		if wrote["mark"] != test.want || wrote["role"] != (test.want && o.Etcd.Linearizable) {
			t.Errorf("%s: pod a is written: %v, want %t", name, wrote, test.want)
		}
	}
}
