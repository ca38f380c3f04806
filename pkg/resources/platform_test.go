// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestImagesOfDefaultRepositoriesMoveToTheRegistry(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, test := range []struct{ registry, image, want string }{
		{"", "quay.io/coreos/etcd:v3.6.16", "quay.io/coreos/etcd:v3.6.16"},
		{"registry.example.com", "quay.io/coreos/etcd:v3.6.16", "registry.example.com/coreos/etcd:v3.6.16"},
		{"registry.example.com:5000/mirror/", "quay.io/coreos/etcd:v3.6.16", "registry.example.com:5000/mirror/coreos/etcd:v3.6.16"},
		{"registry.example.com", "quay.io/coreos/etcd:v3.6.16" + digest, "registry.example.com/coreos/etcd:v3.6.16" + digest},
		{"registry.example.com", "quay.io/etcd-operator/etcd-operator:v0.1.0", "registry.example.com/etcd-operator/etcd-operator:v0.1.0"},
		{"registry.example.com", "quay.io/etcd-operator/etcd-operator" + digest, "registry.example.com/etcd-operator/etcd-operator" + digest},
		{"registry.example.com", "quay.io/coreos/etcd-fips:v3.6.16", "quay.io/coreos/etcd-fips:v3.6.16"},
		{"registry.example.com", "gcr.io/etcd-development/etcd:v3.6.16", "gcr.io/etcd-development/etcd:v3.6.16"},
	} {
		if got, _ := (Platform{ImageRegistry: test.registry}).moved(test.image); got != test.want {
			t.Errorf("%s with --image-registry=%s is %s, not %s", test.image, test.registry, got, test.want)
		}
	}
}

func TestAnotherRegistryRestartsNoMember(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"))
	plain := Pod(c, MemberPod{Name: first})
	for _, p := range []Platform{{}, {ImageRegistry: "one.example.com/mirror"}, {ImageRegistry: "two.example.com"}} {
		pod := p.Member(c, Pod(c, MemberPod{Name: first}))
		if got := RequestedImage(pod); got != Image(c) {
			t.Errorf("a pod of registry %q was made for %s, not for %s", p.ImageRegistry, got, Image(c))
		}
		if pod.Annotations[AnnotationTemplate] != plain.Annotations[AnnotationTemplate] {
			t.Errorf("registry %q changes the template", p.ImageRegistry)
		}
		if _, changed := p.WithVersion(c, pod); changed || p.IsMisplaced(c, pod) {
			t.Errorf("registry %q: a pod as it is made now is changed", p.ImageRegistry)
		}
	}
}

func TestPodThatWaitsForItsImageMovesToTheRegistry(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"))
	old, now := Platform{ImageRegistry: "one.example.com"}, Platform{ImageRegistry: "two.example.com"}
	for name, test := range map[string]struct {
		from, to Platform
		want     string
	}{
		"none before":   {Platform{}, now, "two.example.com/coreos/etcd:v3.6.16"},
		"another image": {old, now, "two.example.com/coreos/etcd:v3.6.16"},
		"none now":      {old, Platform{}, "quay.io/coreos/etcd:v3.6.16"},
	} {
		pod := test.from.Member(c, Pod(c, MemberPod{Name: first}))
		if !test.to.IsMisplaced(c, pod) {
			t.Errorf("%s: the pod is not misplaced", name)
		}
		moved, changed := test.to.WithVersion(c, pod)
		if !changed || imageOf(moved) != test.want || test.to.IsMisplaced(c, moved) || RequestedImage(moved) != Image(c) {
			t.Errorf("%s: changed %t, image %s, requested %s", name, changed, imageOf(moved), RequestedImage(moved))
		}
	}
}

func TestUpgradeAndOwnRepositoryBesideARegistry(t *testing.T) {
	t.Parallel()
	c, p := newCluster(version("3.6.16")), Platform{ImageRegistry: "one.example.com"}
	pod := p.Member(c, Pod(c, MemberPod{Name: first}))
	c.Spec.Version = "3.6.17"
	upgraded, changed := p.WithVersion(c, pod)
	if want := "one.example.com/coreos/etcd:v3.6.17"; !changed || imageOf(upgraded) != want || upgraded.Annotations[AnnotationVersion] != "3.6.17" {
		t.Errorf("upgraded: changed %t, image %s, annotations %v", changed, imageOf(upgraded), upgraded.Annotations)
	}
	// A person names the very repository in the registry: that is what is requested.
	c.Spec.Repository = "one.example.com/coreos/etcd"
	own, changed := p.WithVersion(c, upgraded)
	if !changed || imageOf(own) != Image(c) || RequestedImage(own) != Image(c) || own.Annotations[AnnotationImageRegistry] != "" {
		t.Errorf("own repository: changed %t, image %s, requested %s", changed, imageOf(own), RequestedImage(own))
	}
	if again, changed := p.WithVersion(c, own); changed {
		t.Errorf("it is changed once more: %s", cmp.Diff(own, again))
	}
}

func TestPullSecretsAreAddedToThoseOfTheCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(policy(v1beta2.PodPolicy{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}, {Name: "both"}}}))
	pod := Platform{ImagePullSecrets: []string{"both", "all"}}.Member(c, Pod(c, MemberPod{Name: first}))
	want := []corev1.LocalObjectReference{{Name: "own"}, {Name: "both"}, {Name: "all"}}
	if diff := cmp.Diff(want, pod.Spec.ImagePullSecrets); diff != "" {
		t.Error(diff)
	}
	if len(c.Spec.Pod.ImagePullSecrets) != 2 {
		t.Error("the cluster itself was changed")
	}
}

func TestNodesThatPodsRunOn(t *testing.T) {
	t.Parallel()
	require := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	built := require("kubernetes.io/arch", "amd64", "arm64")
	zone, arm := require("topology.kubernetes.io/zone", "a"), require("kubernetes.io/arch", "arm64")
	nodes := func(terms ...[]corev1.NodeSelectorRequirement) *corev1.Affinity {
		selector := &corev1.NodeSelector{}
		for _, term := range terms {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: term})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
	type terms = [][]corev1.NodeSelectorRequirement
	for name, test := range map[string]struct {
		own      v1beta2.PodPolicy
		terms    terms
		selector map[string]string
	}{
		"nothing declared":           {v1beta2.PodPolicy{}, terms{{built}}, map[string]string{"kubernetes.io/os": "linux"}},
		"another label":              {v1beta2.PodPolicy{NodeSelector: map[string]string{"pool": "etcd"}}, terms{{built}}, map[string]string{"kubernetes.io/os": "linux", "pool": "etcd"}},
		"an architecture":            {v1beta2.PodPolicy{NodeSelector: map[string]string{"kubernetes.io/arch": "s390x"}}, nil, map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "s390x"}},
		"each alternative":           {v1beta2.PodPolicy{Affinity: nodes([]corev1.NodeSelectorRequirement{zone}, []corev1.NodeSelectorRequirement{arm})}, terms{{zone, built}, {arm}}, map[string]string{"kubernetes.io/os": "linux"}},
		"an empty term matches none": {v1beta2.PodPolicy{Affinity: nodes(nil, []corev1.NodeSelectorRequirement{zone})}, terms{nil, {zone, built}}, map[string]string{"kubernetes.io/os": "linux"}},
	} {
		c := newCluster(policy(test.own))
		before := c.DeepCopy()
		pod := Platform{Architectures: []string{"amd64", "arm64"}}.Member(c, Pod(c, MemberPod{Name: first}))
		var got terms
		if a := pod.Spec.Affinity.NodeAffinity; a != nil {
			for _, term := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				got = append(got, term.MatchExpressions)
			}
		}
		if diff := cmp.Diff(test.terms, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(test.selector, pod.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if pod.Spec.Affinity.PodAntiAffinity == nil && test.own.Affinity == nil {
			t.Errorf("%s: members of one cluster are not kept apart", name)
		}
		if diff := cmp.Diff(before, c); diff != "" {
			t.Errorf("%s: the cluster itself was changed: %s", name, diff)
		}
	}
}

func TestUserOfNamespace(t *testing.T) {
	t.Parallel()
	p := Platform{UserOfNamespace: true}
	for name, test := range map[string]struct {
		own               *corev1.PodSecurityContext
		user, group, file *int64
	}{
		"nothing declared": {nil, nil, nil, nil},
		"the user only":    {&corev1.PodSecurityContext{RunAsUser: ptr.To(nonRootID)}, ptr.To(nonRootID), nil, nil},
		"everything":       {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), RunAsGroup: ptr.To[int64](8), FSGroup: ptr.To[int64](9)}, ptr.To[int64](7), ptr.To[int64](8), ptr.To[int64](9)},
	} {
		c := newCluster(policy(v1beta2.PodPolicy{SecurityContext: test.own}))
		sc := p.Member(c, Pod(c, MemberPod{Name: first})).Spec.SecurityContext
		if diff := cmp.Diff([]*int64{test.user, test.group, test.file}, []*int64{sc.RunAsUser, sc.RunAsGroup, sc.FSGroup}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !*sc.RunAsNonRoot || sc.SeccompProfile == nil {
			t.Errorf("%s: the pod is not restricted: %v", name, sc)
		}
	}
}

func TestPlatformOfAJob(t *testing.T) {
	t.Parallel()
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default", UID: "u"},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}, StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim, Verify: v1beta2.VerificationRestore,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
		},
	}
	job, err := BackupJob(b, BackupRun{ScheduledTime: time.Unix(1, 0), Image: DefaultAgentRepository + ":v1", Cluster: newCluster(version("3.6.16")), Members: []MemberAddress{{first, "10.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := Platform{ImageRegistry: "one.example.com", ImagePullSecrets: []string{"all"}, Architectures: []string{"amd64"}, UserOfNamespace: true}
	template := p.Job(job).Spec.Template
	var images []string
	for c := range containersOf(&template.Spec) {
		images = append(images, c.Image)
	}
	const agent = "one.example.com/etcd-operator/etcd-operator:v1"
	if diff := cmp.Diff([]string{agent, agent, agent, "one.example.com/coreos/etcd:v3.6.16", agent}, images); diff != "" {
		t.Error(diff)
	}
	sc := template.Spec.SecurityContext
	if sc.RunAsUser != nil || sc.RunAsGroup != nil || sc.FSGroup != nil || !*sc.RunAsNonRoot {
		t.Errorf("the user is not left to the namespace: %v", sc)
	}
	if template.Spec.ImagePullSecrets[0].Name != "all" || template.Spec.NodeSelector["kubernetes.io/os"] != "linux" || template.Spec.Affinity.NodeAffinity == nil {
		t.Errorf("pull secrets or nodes are missing: %v", template.Spec)
	}
	if a := template.Annotations; a[annotationSafeToEvict] != "false" || a[annotationDoNotDisrupt] != "true" {
		t.Errorf("autoscalers interrupt it: %v", a)
	}
}

func TestWhatAnAutoscalerMayEvict(t *testing.T) {
	t.Parallel()
	unguarded := func(c *v1beta2.EtcdCluster) { c.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled }
	for name, test := range map[string]struct {
		cluster *v1beta2.EtcdCluster
		want    string
	}{
		"the budget guards the quorum": {newCluster(), "true"},
		"the volume keeps the data":    {newCluster(volumes, unguarded), "true"},
		"nothing keeps the data":       {newCluster(unguarded), "false"},
		"a person has decided":         {newCluster(policy(v1beta2.PodPolicy{Annotations: map[string]string{annotationSafeToEvict: "no"}})), "no"},
	} {
		pod := Platform{}.Member(test.cluster, Pod(test.cluster, MemberPod{Name: first}))
		if got := pod.Annotations[annotationSafeToEvict]; got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
