// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// A member that has its data must not begin again without, whatever started it.
func TestJoined(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"))
	for name, m := range map[string]MemberPod{
		"the seed":               {Name: first, Bootstrap: true, InitialCluster: peers(c, first)},
		"a second one":           {Name: first, InitialCluster: peers(c, first, second)},
		"a third one":            {Name: first, InitialCluster: peers(c, first, second, third)},
		"member that comes back": {Name: first, Joined: true, InitialCluster: peers(c, first, second, third)},
	} {
		pod := Pod(c, m)
		if MayFill(pod) == m.Joined {
			t.Errorf("%s: may begin on an empty directory: %t", name, MayFill(pod))
		}
		done, changed := Joined(c, pod)
		if changed == m.Joined || MayFill(done) {
			t.Errorf("%s: changed %t, may begin again %t", name, changed, MayFill(done))
		}
		if names := InitialMembers(done); !slices.Equal(names, []string{first}) || done.Annotations[AnnotationInitialState] != stateExisting {
			t.Errorf("%s: it would join %v, %s", name, names, done.Annotations[AnnotationInitialState])
		}
		if diff := cmp.Diff(pod.Spec, done.Spec); diff != "" {
			t.Errorf("%s: what cannot change has changed: %s", name, diff)
		}
	}
	pod := Pod(c, MemberPod{Name: first, InitialCluster: peers(c, first, second, third)})
	if names := InitialMembers(pod); !slices.Equal(names, []string{first, second, third}) {
		t.Errorf("it joins %v", names)
	}
}

// TestRemovedInitialCluster: without the annotation the launcher waits, and etcd without the launcher begins a
// cluster of its own. Joined writes it again.
func TestRemovedInitialCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"))
	pod := Pod(c, MemberPod{Name: first, Joined: true})
	delete(pod.Annotations, AnnotationInitialCluster)
	done, changed := Joined(c, pod)
	if names := InitialMembers(done); !changed || !slices.Equal(names, []string{first}) || MayFill(done) {
		t.Errorf("changed %t: it would join %v", changed, names)
	}
	pod.Annotations[AnnotationMembership] = MembershipAwaited
	if _, changed := Joined(c, pod); changed {
		t.Error("a pod that waits for its membership was changed")
	}
}

// A pod of an earlier release has flags, which cannot change.
func TestJoinedWithFlags(t *testing.T) {
	t.Parallel()
	old := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: ContainerName, Command: []string{"etcd", "--initial-cluster=a=http://a:2380,b=http://b:2380", "--initial-cluster-state=existing"},
	}}}}
	if names := InitialMembers(old); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("it joins %v", names)
	}
	if _, changed := Joined(newCluster(), old); changed || MayFill(old) {
		t.Error("it is changed without effect, again and again")
	}
	if names := InitialMembers(&corev1.Pod{}); names != nil {
		t.Errorf("nothing says that it joins %v", names)
	}
}

// What a user declares must not have the last word about it.
func TestInitialVariablesComeLast(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"), policy(v1beta2.PodPolicy{
		Annotations: map[string]string{AnnotationInitialState: stateNew},
		EtcdEnv:     []corev1.EnvVar{{Name: envInitialState, Value: stateNew}, {Name: envInitialCluster, Value: "x=http://x:2380"}},
	}))
	pod := join(c)
	if pod.Annotations[AnnotationInitialState] != stateExisting {
		t.Errorf("the state is %s", pod.Annotations[AnnotationInitialState])
	}
	last := map[string]corev1.EnvVar{}
	for _, v := range pod.Spec.Containers[0].Env {
		last[v.Name] = v
	}
	for _, name := range []string{envInitialState, envInitialCluster} {
		if last[name].ValueFrom == nil {
			t.Errorf("%s is %q", name, last[name].Value)
		}
	}
}
