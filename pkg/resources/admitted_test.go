// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestImageStateOf changes the image of a pod at several moments of its life.
func TestImageStateOf(t *testing.T) {
	t.Parallel()
	c, registry := newCluster(version("3.6.11")), Platform{ImageRegistry: "one.example.com"}
	const policys, persons = "mirror.example/etcd@sha256:1", "quay.io/coreos/etcd:v3.7.3"
	set := func(pod *corev1.Pod, image string) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Spec.Containers[0].Image = image
		return pod
	}
	admitted := func(requested *corev1.Pod) *corev1.Pod {
		pod, differs := NoteAdmitted(requested, requested, set(requested, policys))
		if !differs {
			t.Error("an image that a policy has changed is not noted")
		}
		return pod
	}
	earlier := func(pod *corev1.Pod) *corev1.Pod {
		pod = pod.DeepCopy()
		delete(pod.Annotations, AnnotationAdmittedImage)
		return pod
	}
	untouched := func(pod *corev1.Pod, restarts int32) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Generation, pod.Status.ContainerStatuses = 1, []corev1.ContainerStatus{{Name: ContainerName, RestartCount: restarts}}
		return pod
	}
	created := Pod(c, MemberPod{Name: first})
	moved := registry.Member(c, created.DeepCopy())
	upgraded, _ := WithVersion(newCluster(version("3.6.16")), created)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want ImageState
	}{
		"created":                                               {created, ImageAdmitted},
		"created, from another registry":                        {moved, ImageAdmitted},
		"changed by a policy when it was created":               {admitted(created), ImageAdmitted},
		"upgraded":                                              {upgraded, ImageAdmitted},
		"upgraded, and changed by a policy":                     {admitted(upgraded), ImageAdmitted},
		"changed by a person":                                   {set(created, persons), ImageChanged},
		"changed by a person, from another registry":            {set(moved, persons), ImageChanged},
		"changed by a person after a policy":                    {set(admitted(created), persons), ImageChanged},
		"changed by a person to what was requested":             {set(admitted(created), imageOf(created)), ImageChanged},
		"changed by a policy, and not noted":                    {untouched(set(created, policys), 0), ImageUnnoted},
		"changed by a person before Kubernetes counted changes": {untouched(set(created, persons), 1), ImageChanged},
		"created and noted":                                     {untouched(created, 0), ImageAdmitted},
		"of an earlier release":                                 {earlier(created), ImageAdmitted},
		"of an earlier release from another registry":           {earlier(moved), ImageAdmitted},
		"of an earlier release, and changed":                    {earlier(set(created, policys)), ImageUnconfirmed},
	} {
		if got := ImageStateOf(test.pod); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestWithNote: a pod that lacks the note of what a policy admitted gets it once, and keeps its image.
func TestWithNote(t *testing.T) {
	t.Parallel()
	pod, now := Pod(newCluster(), MemberPod{Name: first}), time.Unix(1, 0)
	pod.CreationTimestamp = metav1.NewTime(now)
	if _, lacks := WithNote(pod, now); lacks || IsImageFromPolicy(pod) {
		t.Error("the image of a pod that no policy has changed is noted")
	}
	pod.Spec.Containers[0].Image, pod.Generation = "mirror.example/etcd@sha256:1", 1
	if _, lacks := WithNote(pod, now.Add(NoteWithin)); lacks {
		t.Error("an image that something else may have set counts as admitted")
	}
	noted, lacks := WithNote(pod, now)
	if !lacks || ImageStateOf(noted) != ImageAdmitted || imageOf(noted) != imageOf(pod) || !IsImageFromPolicy(noted) || !IsImageFromPolicy(pod) {
		t.Errorf("noted %t, image %s, %v", lacks, imageOf(noted), noted.Annotations)
	}
	if _, again := WithNote(noted, now); again {
		t.Error("it is noted once more")
	}
	if requested, changed := WithVersion(newCluster(), pod); !changed || imageOf(requested) != Image(newCluster()) {
		t.Error("an image that lacks its note is not requested again")
	}
	noted.Spec.Containers[0].Image, noted.Generation = "by/hand:1", 2
	if _, lacks := WithNote(noted, now); lacks {
		t.Error("the image of another writer counts as admitted")
	}
}

// TestIsImageFromPolicy: the registry of the platform is no policy.
func TestIsImageFromPolicy(t *testing.T) {
	t.Parallel()
	c := newCluster()
	moved := Platform{ImageRegistry: "one.example.com"}.Member(c, Pod(c, MemberPod{Name: first}))
	if imageOf(moved) == Image(c) || IsImageFromPolicy(moved) {
		t.Errorf("image %s, from a policy %t", imageOf(moved), IsImageFromPolicy(moved))
	}
}

// TestHasOtherInitImage: a new pod helps an init container of the controller whose image a policy has changed.
func TestHasOtherInitImage(t *testing.T) {
	t.Parallel()
	const agent = DefaultAgentRepository + ":v1"
	set := func(name, image string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			for i := range pod.Spec.InitContainers {
				if pod.Spec.InitContainers[i].Name == name {
					pod.Spec.InitContainers[i].Image = image
				}
			}
		}
	}
	prepared := func(p Platform) *corev1.Pod {
		return p.Member(newCluster(), Pod(newCluster(), MemberPod{Name: first, Prepared: true, Image: agent}))
	}
	recovers := func(p Platform) *corev1.Pod {
		pod, err := RecoveryPod(lostCluster(true), recovery(func(r *v1beta2.RecoveryStatus) { r.Source.PVC = "c-old" }), MemberPod{}, agent)
		if err != nil {
			t.Fatal(err)
		}
		return p.Member(lostCluster(true), pod)
	}
	for name, test := range map[string]struct {
		pod  func(Platform) *corev1.Pod
		edit func(*corev1.Pod)
		want bool
	}{
		"a prepared pod":                    {prepared, func(*corev1.Pod) {}, false},
		"a recovery member":                 {recovers, func(*corev1.Pod) {}, false},
		"the launcher":                      {prepared, set(InitLauncher, "mirror/agent"), true},
		"the agent of a recovery member":    {recovers, set(InitInstall, "mirror/agent"), true},
		"etcd's image in a recovery member": {recovers, set(InitRestore, "mirror/etcd"), true},
		"it has ended": {prepared, func(pod *corev1.Pod) {
			set(InitLauncher, "mirror/agent")(pod)
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: InitLauncher, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		}, false},
		"that of a mesh": {prepared, func(pod *corev1.Pod) {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "mesh", Image: "mesh"})
		}, false},
	} {
		for _, p := range []Platform{{}, {ImageRegistry: "one.example.com"}} {
			pod := test.pod(p)
			test.edit(pod)
			if got := p.HasOtherInitImage(pod, agent); got != test.want {
				t.Errorf("%s, registry %q: %t", name, p.ImageRegistry, got)
			}
		}
	}
}

// TestWithVersionTakesAChangeBack: the requested image comes back, once.
func TestWithVersionTakesAChangeBack(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.11"))
	for name, platform := range map[string]Platform{"as it is": {}, "another registry": {ImageRegistry: "one.example.com"}} {
		for _, earlier := range []bool{false, true} {
			want := platform.Member(c, Pod(c, MemberPod{Name: first}))
			pod := want.DeepCopy()
			pod.Spec.Containers[0].Image = "quay.io/coreos/etcd:v3.7.3"
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: ContainerName, ContainerID: "id"}}
			if earlier {
				delete(pod.Annotations, AnnotationAdmittedImage)
			}
			repaired, changed := platform.WithVersion(c, pod)
			if !changed || imageOf(repaired) != imageOf(want) || ImageStateOf(repaired) != ImageAdmitted || IsSettled(repaired) {
				t.Errorf("%s: changed %t, image %s, settled %t, %v", name, changed, imageOf(repaired), IsSettled(repaired), repaired.Annotations)
			}
			if again, changed := platform.WithVersion(c, repaired); changed {
				t.Errorf("%s: it is changed once more: %v", name, again.Annotations)
			}
		}
	}
}

// TestNoteAdmitted: only what was requested with the write itself is noted.
func TestNoteAdmitted(t *testing.T) {
	t.Parallel()
	pod := Pod(newCluster(version("3.6.11")), MemberPod{Name: first})
	pod.Spec.Containers[0].Image = "by/hand:1"
	labelled, _ := WithRole(pod, RoleVoter)
	if _, differs := NoteAdmitted(labelled, labelled, labelled.DeepCopy()); differs {
		t.Error("the image of another writer counts as admitted because a label was written")
	}
	changed := labelled.DeepCopy()
	changed.Spec.Containers[0].Image = "mirror/by/hand:1"
	if _, differs := NoteAdmitted(labelled, labelled, changed); differs {
		t.Error("what a policy made of the image of another writer counts as admitted")
	}
}
