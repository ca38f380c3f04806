// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// restWithin is longer than the period in which a controller may want to look again.
const restWithin = 31 * time.Second

// TestStatusTruth tries what makes operators of etcd say what is not so, or do what they
// cannot get out of. docs/explanation/status.md lists what is tried here and what elsewhere.
func TestStatusTruth(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(*testing.T){
		"majority and data destroyed":           tryMajorityDestroyed,
		"all members and data destroyed":        tryAllDestroyed,
		"3 to 5 to 3 to 5 with volumes":         tryThereAndBack,
		"the same name in two namespaces":       trySameName,
		"a version is reported when it runs":    tryVersionSaid,
		"ready when it serves":                  tryReady,
		"an empty volume is another member":     tryEmptyVolume,
		"an empty disk is another member":       tryEmptyDisk,
		"two of three volumes emptied":          tryEmptyVolumes,
		"damaged data is reported and replaced": tryDamagedLog,
		"data that differs takes no writes":     tryCorrupt,
		"etcd denies access":                    tryDenied,
		"the name of the service is taken":      tryTakenService,
		"a version with a leading v":            trySpelledVersion,
		"nothing is written at rest":            tryRest,
		"shrinking is not over before it is":    tryShrinking,
		"an operation is cancelled by a user":   tryCancel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t)
		})
	}
}

// keeps fails the test if the object becomes wrong within a time.
func (c *cluster) keeps(d time.Duration, what string, wrong func(*clusterObject) bool) {
	c.Helper()
	if c.becomes(d, wrong) {
		c.Errorf("the status does not keep saying %s:\n%s", what, describe(c.get()))
	}
}

// becomes is true as soon as something is true of the object, and false if it is not
// within a time.
func (c *cluster) becomes(d time.Duration, is func(*clusterObject) bool) bool {
	c.Helper()
	view, err := env.Cluster(c.ctx(), c.namespace, c.name)
	c.must(err, "watch cluster %s", c.name)
	defer view.Close()
	return view.Await(c.within(d), func(list []*clusterObject) bool { return slices.ContainsFunc(list, is) }) == nil
}

// isDown is true for a status that counts a member among those that do not serve. On a busy machine a member that serves
// may be beside it for a moment, since its response came late.
func isDown(object *clusterObject, member string) bool {
	return slices.Contains(object.Status.Members.Unready, member) && is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue)
}

// isReportedLost is true for a status that says that the quorum is lost in each of the fields
// that are about it.
func isReportedLost(object *clusterObject) bool {
	s := &object.Status
	return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) &&
		is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse) &&
		is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue) &&
		s.Phase == v1beta2.ClusterPhaseFailed && len(s.Members.Ready) == 0 && ptr.Deref(s.Tolerance, 99) < 0 && s.BlockedBy != nil
}

// loses destroys members with their data at once, and makes sure that the status reports the
// loss within seconds and keeps reporting it.
func (c *cluster) loses(targets []*corev1.Pod) {
	c.Helper()
	args := []string{"delete", "pods", "--force", "--grace-period=0"}
	for _, p := range targets {
		c.hang(p) // none of them is there any more when the first one is missed
		args = append(args, p.Name)
	}
	from := time.Now()
	c.kubectl(args...)
	object := c.await(c.within(truthWithin), "the loss of the quorum in every field", isReportedLost)
	c.Logf("reported in every field after %v", time.Since(from).Round(10*time.Millisecond))
	if n := len(object.Status.Members.Unready); n != 3 {
		c.Errorf("%d members are called unready, not 3:\n%s", n, describe(object))
	}
	c.keeps(restWithin, "that the quorum is lost", func(object *clusterObject) bool { return !isReportedLost(object) })
	c.contains(c.kubectl("get", "etcd", c.name, "--no-headers"), " 0/3 ", "Failed")
}

func tryMajorityDestroyed(t *testing.T) {
	s := start(t)
	c := s.create("two-of-three", 3, etcdVersion)
	data, survivor := c.fill(), c.leader().Pod
	c.loses(slices.DeleteFunc(c.members.Live(), func(p *corev1.Pod) bool { return p.Name == survivor.Name }))
	c.has(survivor, data)
	if live := c.members.Live(); len(live) != 1 || live[0].UID != survivor.UID {
		t.Errorf("the survivor was not left alone: %d pods", len(live))
	}
}

func tryAllDestroyed(t *testing.T) {
	s := start(t)
	c := s.create("all-of-three", 3, etcdVersion)
	c.loses(c.members.Live())
	if live := c.members.Live(); len(live) > 0 {
		t.Errorf("%s was started, on no data", live[0].Name)
	}
}

// tryThereAndBack: a member that was scaled away must not leave anything behind that the
// next one stumbles over, and never comes back.
func tryThereAndBack(t *testing.T) {
	s := start(t)
	c := s.create("there-and-back", 3, etcdVersion, withVolumes)
	data := c.fill()
	gone := map[uint64]bool{}
	for _, size := range []int{5, 3, 5} {
		before := c.ids()
		s.kubectl("scale", "etcdcluster/"+c.name, fmt.Sprintf("--replicas=%d", size))
		object := c.settle(size)
		if got, want := ptr.Deref(object.Status.Tolerance, 99), int32((size-1)/2); got != want {
			t.Errorf("the tolerance of %d members is %d", size, got)
		}
		s.until(s.within(time.Minute), fmt.Sprintf("a read from every member after scaling to %d", size), func() bool {
			return c.members.Reads(s.ctx()) == nil
		})
		now := c.ids()
		for name, id := range before {
			gone[id] = gone[id] || now[name] != id
		}
		for name, id := range now {
			if gone[id] {
				t.Errorf("%s is member %x, which was removed", name, id)
			}
		}
	}
	c.holds(data)
}

// trySameName: clusters of one name must not take each other for the same one.
func trySameName(t *testing.T) {
	s := start(t)
	other := s.another("other")
	a, b := s.create("same", 1, etcdVersion), other.create("same", 1, etcdVersion)
	if x, y := a.clusterID(), b.clusterID(); x == y {
		t.Errorf("two clusters have the ID %x", x)
	}
	for member, id := range a.ids() {
		if slices.Contains(slices.Collect(maps.Values(b.ids())), id) {
			t.Errorf("%s and a member of the other cluster have the ID %x", member, id)
		}
	}
}

// tryVersionSaid: a declared version is not one that runs. As soon as the status says
// that it runs, every member must say so.
func tryVersionSaid(t *testing.T) {
	s := start(t)
	c := s.create("versioned", 3, previousVersion)
	data := c.fill()
	s.kubectl(patchVersion(c.name, etcdVersion)...)
	c.await(s.ctx(), "the status to report the version", func(object *clusterObject) bool {
		return object.Status.CurrentVersion == etcdVersion ||
			(object.Status.ObservedGeneration == object.Generation && is(object, v1beta2.ClusterConditionProgressing, corev1.ConditionFalse))
	})
	for member, a := range c.responses() {
		if a.Version != etcdVersion {
			t.Errorf("%s runs %s, and the status says\n%s", member, a.Version, describe(c.get()))
		}
	}
	c.settle(3)
	c.holds(data)
}

// tryReady: Kubernetes sends clients to a voter whose pod is ready, so it must serve. One that does not on a busy machine
// may be ready until its probe has failed, and no longer; it is looked at again when it is ready again.
func tryReady(t *testing.T) {
	s := start(t)
	c := s.cluster("ready")
	s.apply(manifest(c.name, 3, etcdVersion))
	seen := map[types.UID]bool{}
	err := c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if seen[p.UID] || !harness.IsPodReady(p) || p.Labels["etcd_role"] != "voter" {
				continue
			}
			client, err := c.members.Client(p)
			s.must(err, "connect to %s", p.Name)
			_, err = client.Get(s.within(10*time.Second), "x")
			stays := slices.ContainsFunc(c.members.Pods.List(), func(now *corev1.Pod) bool { return now.UID == p.UID && harness.IsPodReady(now) })
			if err != nil && stays {
				t.Errorf("%s stays ready, and a linearizable read fails: %v", p.Name, err)
			}
			if err == nil || stays {
				seen[p.UID] = true
			}
		}
		return len(seen) == 3
	})
	s.must(err, "three voters to be ready")
	c.settle(3)
}

// tryEmptyVolume: a member that has lost its volume has forgotten what it has
// acknowledged, so it must not vote under its old ID.
func tryEmptyVolume(t *testing.T) {
	s := start(t)
	c := s.create("emptied", 3, etcdVersion, withVolumes)
	data := c.fill()
	target := c.follower()
	s.kubectl("delete", "pvc", target.Pod.Name, "--wait=false")
	s.kubectl("delete", "pod", target.Pod.Name, "--force", "--grace-period=0")
	c.await(s.ctx(), "another member in its place", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
	})
	c.settle(3)
	for member, id := range c.ids() {
		if id == target.ID {
			t.Errorf("%s came back as member %x on an empty volume", member, id)
		}
	}
	for _, p := range c.members.Live() {
		if n := p.Status.ContainerStatuses[0].RestartCount; n > 0 {
			t.Errorf("%s was restarted %d times", p.Name, n)
		}
	}
	c.holds(data)
}

// tryRest: what is as declared is not written again. A look that comes late on a busy machine writes what it missed, and
// the next look takes it back: one of three windows is without a write.
func tryRest(t *testing.T) {
	s := start(t)
	c := s.create("resting", 1, etcdVersion)
	written := func() string {
		return s.kubectl("get", "etcd,services,pdb,pods", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	}
	before := written()
	// Kubernetes itself writes some of them for a moment after they were made.
	for c.becomes(5*time.Second, func(*clusterObject) bool { return false }) || written() != before {
		if s.ctx().Err() != nil {
			t.Fatalf("the cluster does not come to rest:\n%s\n%s", before, written())
		}
		before = written()
	}
	for range 3 {
		rested := c.get().ResourceVersion
		changed := c.becomes(restWithin, func(object *clusterObject) bool { return object.ResourceVersion != rested })
		after := written()
		if !changed && after == before {
			return
		}
		t.Logf("written at rest: before\n%safter\n%s%s", before, after, describe(c.get()))
		before = written()
	}
	t.Errorf("something is written at rest in each of three windows of %v", restWithin)
}

// tryShrinking: while a voter too many is on its way out, nothing says that the size has
// been reached. A member that responds late takes from the tolerance for a moment, and during
// an election it is not known; it never is more than that of three members.
func tryShrinking(t *testing.T) {
	s := start(t)
	c := s.create("shrinking", 4, etcdVersion)
	rows := c.watchRows()
	view, err := env.Cluster(s.ctx(), s.namespace, c.name)
	s.must(err, "watch the cluster")
	defer view.Close()
	s.kubectl("scale", "etcdcluster/"+c.name, "--replicas=3")
	err = view.Await(s.ctx(), func(list []*clusterObject) bool {
		if len(list) != 1 || list[0].Status.ObservedGeneration != list[0].Generation || *list[0].Spec.Replicas != 3 {
			return false
		}
		object := list[0]
		tolerance, scaling := ptr.Deref(object.Status.Tolerance, 0), is(object, v1beta2.ClusterConditionScaling, corev1.ConditionTrue)
		if over := object.Status.Replicas == 3; over == scaling || over && tolerance > 1 || !over && isSettled(object, 3) {
			t.Errorf("of a cluster that goes from 4 to 3 members the status says\n%s", describe(object))
		}
		return isSettled(object, 3)
	})
	s.must(err, "3 members")
	if object := c.settle(3); ptr.Deref(object.Status.Tolerance, 99) != 1 {
		t.Errorf("the tolerance of 3 members is wrong in:\n%s", describe(object))
	}
	seen := rows("3 3/3")
	if i := slices.Index(seen, "3 3/3"); i < 0 || slices.ContainsFunc(seen[i:], func(row string) bool { return strings.HasSuffix(row, "/4") }) {
		t.Errorf("kubectl get --watch showed %q", seen)
	}
}

// tryCancel makes sure that a user can end an operation that cannot go on.
func tryCancel(t *testing.T) {
	s := start(t)
	c := s.create("cancelled", 3, etcdVersion)
	hung := c.follower().Pod
	c.hang(hung)
	c.await(s.within(noticeWithin), "the member to be missed", func(object *clusterObject) bool {
		return slices.Contains(object.Status.Members.Unready, hung.Name)
	})
	first := post[v1beta2.EtcdClusterOperation](c, "defrag", "{}").Status.ID
	s.contains(s.rejected("{}", "create", "--raw", c.raw("defrag"), "-f", "-"), first)
	s.kubectl("annotate", "etcd", c.name, "etcd.database.coreos.com/cancel-operation="+first)
	object := c.await(s.within(repairWithin), "the operation to be over", func(object *clusterObject) bool { return object.Status.Operation.IsOver() })
	if op := object.Status.Operation; op.ID != first || op.Phase != v1beta2.OperationFailed || !strings.Contains(op.Message, "cancelled") {
		t.Errorf("a cancelled operation is %+v", op)
	}
	c.resume(hung)
	c.settle(3)
	c.defragsAgain()
}

// defragsAgain makes sure that an operation succeeds after a cancelled one. A member that responds late on a busy machine is
// left out of an operation, which then is requested again.
func (c *cluster) defragsAgain() {
	c.Helper()
	for try := 1; ; try++ {
		id := post[v1beta2.EtcdClusterOperation](c, "defrag", "{}").Status.ID
		object := c.await(c.within(time.Minute), "the next operation to be over", func(object *clusterObject) bool { return object.Status.Operation.IsOver() })
		op := object.Status.Operation
		if op.ID == id && op.Phase == v1beta2.OperationSucceeded {
			return
		}
		missed := slices.ContainsFunc(op.Results, func(r v1beta2.OperationResult) bool {
			return r.State == v1beta2.OperationFailed && r.Message == "it does not serve"
		})
		if op.ID != id || !missed || try == 3 {
			c.Errorf("operation %d after a cancelled one is %+v", try, op)
			return
		}
	}
}
