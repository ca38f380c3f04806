// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestLateKubelet changes the image of a pod: it is called ready for a while because of
// the container before, and must not be taken for ready.
func TestLateKubelet(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	report := func(id string) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: resources.ContainerName, ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}
	check := func(when string, ready, restarting bool) {
		t.Helper()
		if o := observedPod(c, pod); o.Ready != ready || o.Restarting != restarting {
			t.Errorf("%s: ready %t, restarting %t", when, o.Ready, o.Restarting)
		}
	}
	report("containerd://old")
	check("at rest", true, false)
	c.Spec.Version = "3.6.16"
	pod, _ = resources.WithVersion(c, pod)
	check("with another image", false, true)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
	check("without a container", false, false)
	report("containerd://new")
	check("with a container of its own", true, false)
}

// TestEvictedPodSaysWhy: what Kubernetes said when it ended a pod is what status shows.
func TestEvictedPodSaysWhy(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on ephemeral-storage"}
	if o := observedPod(c, pod); !o.Finished || o.Waiting != "Evicted: the node was low on ephemeral-storage" {
		t.Errorf("%+v", o)
	}
}

// TestAddressFamilies: requests go to members at the address of their pod, of either
// family.
func TestAddressFamilies(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	for ip, want := range map[string]string{"10.0.0.7": "10.0.0.7:2379", "fd00::7": "[fd00::7]:2379"} {
		pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
		pod.Status.PodIP = ip
		e := endpointOf(c, pod)
		if e.Address != want || e.URL != "http://c-a.c.n.svc:2379" || e.Name != "c-a" {
			t.Errorf("%s gave %+v", ip, e)
		}
	}
}

// TestClusterDomainOutlivesTheController: a controller that starts knows the members of a
// cluster with a domain again, and makes new ones with it.
func TestClusterDomainOutlivesTheController(t *testing.T) {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"},
		Spec:       v1beta2.ClusterSpec{Version: "3.6.11", Pod: &v1beta2.PodPolicy{ClusterDomain: ".cluster.local"}},
	}
	const url = "http://c-a.c.n.svc.cluster.local:2380"
	m := member(c, etcd.Member{ID: 1, PeerURLs: []string{url}})
	if m.Name != "c-a" || m.Unmanaged {
		t.Errorf("the member is %+v", m)
	}
	s := &seen{Observed: planner.Observed{Cluster: c}}
	for _, p := range peers(s, []string{"c-a", "c-b"}) {
		if want := "http://" + p.Name + ".c.n.svc.cluster.local:2380"; p.URL != want {
			t.Errorf("a new member gets %s, not %s", p.URL, want)
		}
	}
	if m := member(c, etcd.Member{ID: 2, PeerURLs: []string{"http://c-b.c.n.svc:2380"}}); !m.Unmanaged {
		t.Errorf("a member without the domain was taken for one that was made with it: %+v", m)
	}
}

// TestDigestOfTheImage: another digest is another image; one of another version than the
// declared one has no digest.
func TestDigestOfTheImage(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("1", 64)
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	if observedPod(c, pod).Outdated {
		t.Error("a new pod is outdated")
	}
	c.Spec.ImageDigest = digest[1:]
	if !observedPod(c, pod).Outdated {
		t.Error("a pod without the digest is not outdated")
	}
	if changed, differs := resources.WithVersion(c, pod); !differs || observedPod(c, changed).Outdated {
		t.Errorf("differs %t, image %s", differs, changed.Spec.Containers[0].Image)
	}
	for version, want := range map[string]string{
		"": ":v3.6.11" + digest, "3.6.11": ":v3.6.11" + digest, "v3.6.11": ":v3.6.11" + digest, "3.6.10": ":v3.6.10", "3.5.26": ":v3.5.26",
	} {
		if got := resources.Image(atVersion(c, version)); got != v1beta2.DefaultRepository+want {
			t.Errorf("at version %q the image is %s", version, got)
		}
	}
}

// TestInitImageOfAPolicyIsObserved: the planner learns that a prepared pod waits with another image of the launcher than
// a new pod would have.
func TestInitImageOfAPolicyIsObserved(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	for image, want := range map[string]bool{"agent:1": false, "mirror/agent:1": true} {
		pod := resources.Pod(c, resources.MemberPod{Name: "c-a", Prepared: true, Image: image})
		r := &run{Reconciler: &Reconciler{Config: Config{Cache: cordons{}, AgentImage: "agent:1"}}, seen: &seen{Observed: planner.Observed{Cluster: c}}}
		sortObjects(r, []*corev1.Pod{pod}, nil, nil)
		if got := r.seen.Prepared[0].OtherInitImage; got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}

// TestPodThatWaitsForItsImage: only a member that does not run needs another registry.
func TestPodThatWaitsForItsImage(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	r := &Reconciler{Config: Config{Platform: resources.Platform{ImageRegistry: "registry.example.com"}}}
	for _, running := range []bool{true, false} {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.ContainerName}}
		if running {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		}
		if observedPod(c, pod).Outdated || isMisplaced(&run{Reconciler: r}, c, pod) == running {
			t.Errorf("running %t: outdated %t, misplaced %t", running, observedPod(c, pod).Outdated, isMisplaced(&run{Reconciler: r}, c, pod))
		}
	}
	moved, changed := r.Platform.WithVersion(c, pod)
	if !changed || isMisplaced(&run{Reconciler: r}, c, moved) || observedPod(c, moved).Outdated {
		t.Errorf("changed %t, image %s", changed, moved.Spec.Containers[0].Image)
	}
}

// TestUnusedName: the name of a rejected pod serves again, unless its PVC exists: a recovery
// member of that name would run on the PVC of another member.
func TestUnusedName(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}}
	r := &run{Reconciler: &Reconciler{Config: Config{Suffix: func() string { return "fresh" }}}, seen: &seen{Observed: planner.Observed{Cluster: c, NewName: "c-rejected"}}}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, test := range []struct {
		pod, pvc, want string
	}{
		{"c-a", "c-a", "c-rejected"},
		{"c-a", "c-rejected", "c-fresh"},
		{"c-rejected", "c-a", "c-fresh"},
	} {
		got := unusedName(r, []*corev1.Pod{{ObjectMeta: named(test.pod)}}, []*corev1.PersistentVolumeClaim{{ObjectMeta: named(test.pvc)}})
		if got != test.want {
			t.Errorf("beside pod %s and PVC %s: %s, want %s", test.pod, test.pvc, got, test.want)
		}
	}
}
