// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestPodHasNoShellAndOneContainer(t *testing.T) {
	t.Parallel()
	for name, c := range everyCluster() {
		pod := join(c)
		if len(pod.Spec.InitContainers) != 0 || len(pod.Spec.Containers) != 1 {
			t.Errorf("%s: containers other than etcd", name)
		}
		ctr := &pod.Spec.Containers[0]
		if ctr.Command[0] != etcdBinary || len(ctr.Args) != 0 {
			t.Errorf("%s: runs %q %q", name, ctr.Command, ctr.Args)
		}
		for _, p := range []*corev1.Probe{ctr.StartupProbe, ctr.ReadinessProbe, ctr.LivenessProbe} {
			if p == nil || p.Exec != nil {
				t.Errorf("%s: probe %+v", name, p)
			}
		}
		if hook := ctr.Lifecycle; hook.PreStop == nil || hook.PreStop.Sleep == nil || hook.PreStop.Exec != nil || hook.PostStart != nil {
			t.Errorf("%s: lifecycle hooks %+v", name, hook)
		}
	}
}

// Whatever stands in a name, a version or an option stays in its own argument.
func TestHostileValuesStayInTheirArgument(t *testing.T) {
	t.Parallel()
	plain := newCluster(version("3.6.16"), everyOption)
	want := len(join(plain).Spec.Containers[0].Command)
	for _, evil := range []string{
		"a b", "a; rm -rf /", "$(id)", "`id`", "a\n--force-new-cluster", "a --force-new-cluster", "--force-new-cluster", "a,b=c", "\x00", "' OR '1'='1",
	} {
		c := newCluster(version("3.6.16"), everyOption)
		c.Namespace = evil
		c.Spec.Repository = evil
		c.Spec.Version = evil
		c.Spec.Etcd.AutoCompaction.Retention = evil
		c.Spec.Pod = &v1beta2.PodPolicy{ClusterDomain: evil}
		pod := Pod(c, MemberPod{Name: evil, InitialCluster: peers(c, evil, first, second)})
		command := pod.Spec.Containers[0].Command
		if len(command) != want {
			t.Errorf("%q: %d arguments, want %d: %q", evil, len(command), want, command)
		}
		for _, arg := range command[1:] {
			if flag, _, ok := strings.Cut(arg, "="); !ok || flag == "--force-new-cluster" {
				t.Errorf("%q became the argument %q", evil, arg)
			}
		}
	}
}

// TestNoVariablesAreExpanded: the kubelet writes what a user has written, and no value of another variable.
func TestNoVariablesAreExpanded(t *testing.T) {
	t.Parallel()
	const evil = "$(SECRET) $$(SECRET) $x"
	escaped := strings.ReplaceAll(evil, "$", "$$")
	c := newCluster(version("3.6.16"), everyOption)
	c.Spec.Etcd.ExtraArgs = []string{"--log-outputs=" + evil}
	secret := corev1.EnvVar{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{secret, {Name: "ETCD_NAME", Value: evil}}}
	pod := join(c)
	etcd := &pod.Spec.Containers[0]
	if !slices.Contains(etcd.Command, "--log-outputs="+escaped) {
		t.Errorf("command %q", etcd.Command)
	}
	if !slices.ContainsFunc(etcd.Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_NAME" && e.Value == escaped }) {
		t.Errorf("environment %v", etcd.Env)
	}
	if c.Spec.Pod.EtcdEnv[1].Value != evil {
		t.Error("the spec was changed")
	}
	job := corev1.Container{}
	addEnv(&job, []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: evil}})
	if job.Env[0].Value != escaped {
		t.Errorf("environment of a Job %v", job.Env)
	}
}

func TestPodIsPure(t *testing.T) {
	t.Parallel()
	for name, c := range everyCluster() {
		before := c.DeepCopy()
		a, b := join(c), join(c)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two pods of one member differ", name)
		}
		// Write to everything that could be shared with the spec.
		for k := range a.Labels {
			a.Labels[k] = "x"
		}
		for k := range a.Spec.NodeSelector {
			a.Spec.NodeSelector[k] = "x"
		}
		for i := range a.Spec.Tolerations {
			a.Spec.Tolerations[i].Key = "x"
		}
		for i := range a.Spec.Containers[0].Env {
			a.Spec.Containers[0].Env[i].Name = "x"
		}
		for k := range a.Spec.Containers[0].Resources.Requests {
			delete(a.Spec.Containers[0].Resources.Requests, k)
		}
		a.Spec.Containers[0].Command = append(a.Spec.Containers[0].Command[:1], "x")
		*a.Spec.SecurityContext.RunAsUser = 1
		*a.Spec.TerminationGracePeriodSeconds = 1
		for i := range a.Spec.TopologySpreadConstraints {
			a.Spec.TopologySpreadConstraints[i].LabelSelector.MatchLabels["x"] = "x"
		}
		if diff := cmp.Diff(before, c); diff != "" {
			t.Errorf("%s: the pod shares memory with the cluster: %s", name, diff)
		}
	}
}

func TestInitialClusterDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	c := newCluster()
	forth := Pod(c, MemberPod{Name: first, InitialCluster: peers(c, first, second, third)})
	back := Pod(c, MemberPod{Name: first, InitialCluster: peers(c, third, second, first)})
	if diff := cmp.Diff(forth, back); diff != "" {
		t.Error(diff)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	revisions := func(c *v1beta2.EtcdCluster) {
		c.Spec.Etcd = &v1beta2.EtcdOptions{AutoCompaction: &v1beta2.AutoCompaction{Mode: v1beta2.AutoCompactionRevision, Retention: "10000"}}
	}
	for _, tc := range []struct {
		name    string
		cluster *v1beta2.EtcdCluster
		has     []string
		hasNot  []string
	}{
		{"3.2 rounds hours up", newCluster(everyOption), []string{"--auto-compaction-retention=2", "--quota-backend-bytes=8589934592"},
			[]string{"--auto-compaction-mode", "--listen-metrics-urls", "--strict-reconfig-check"}},
		{"3.2 cannot count revisions", newCluster(revisions), nil, []string{"--auto-compaction"}},
		{"3.3 listens for metrics", newCluster(version("3.3.12"), revisions),
			[]string{"--listen-metrics-urls=http://0.0.0.0:2381", "--auto-compaction-mode=revision", "--auto-compaction-retention=10000"},
			[]string{"--strict-reconfig-check"}},
		{"3.4 has learners", newCluster(version("3.4.0")), []string{"--strict-reconfig-check=false"}, nil},
		{"3.7 as well", newCluster(version("3.7.3"), everyOption),
			[]string{"--strict-reconfig-check=false", "--heartbeat-interval=250", "--election-timeout=2500", "--snapshot-count=25000", "--auto-compaction-retention=90m"}, nil},
		{"metrics stay plain under TLS", newCluster(version("3.6.16"), staticTLS),
			[]string{"--listen-metrics-urls=http://0.0.0.0:2381", "--listen-client-urls=https://0.0.0.0:2379", "--client-cert-auth=true"}, nil},
		{"only a seed has a token", newCluster(version("3.6.16")), nil, []string{"--initial-cluster-token"}},
	} {
		command := join(tc.cluster).Spec.Containers[0].Command
		for _, want := range tc.has {
			if !slices.Contains(command, want) {
				t.Errorf("%s: %q is missing in %q", tc.name, want, command)
			}
		}
		for _, bad := range tc.hasNot {
			if slices.ContainsFunc(command, func(arg string) bool { return strings.HasPrefix(arg, bad) }) {
				t.Errorf("%s: %q must not be in %q", tc.name, bad, command)
			}
		}
	}
}

func TestExtraArgumentsComeLast(t *testing.T) {
	t.Parallel()
	command := seed(newCluster(version("3.6.16"), staticTLS, everyOption)).Spec.Containers[0].Command
	if got, want := command[len(command)-2:], []string{"--max-txn-ops=512", "--metrics=extensive"}; !slices.Equal(got, want) {
		t.Errorf("the last arguments are %q, want %q", got, want)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version      string
		tls          bool
		alive, ready string
	}{
		{"3.1.10", false, "tcp:2380", "http:2379/health"},
		{"3.2.13", false, "tcp:2380", "http:2379/health"},
		{"3.2.13", true, "tcp:2380", "tcp:2379"},
		{"3.3.0", true, "tcp:2380", "http:2381/health?exclude=NOSPACE"},
		{"3.4.28", false, "tcp:2380", "http:2379/health?exclude=NOSPACE"},
		{"3.4.29", false, "http:2381/livez", "http:2379/readyz"},
		{"3.5.2", false, "tcp:2380", "http:2379/health?exclude=NOSPACE"},
		{"3.5.3", false, "http:2381/health?exclude=NOSPACE&exclude=CORRUPT&serializable=true", "http:2379/health?exclude=NOSPACE"},
		{"3.5.10", true, "http:2381/health?exclude=NOSPACE&exclude=CORRUPT&serializable=true", "http:2381/health?exclude=NOSPACE"},
		{"3.5.11", true, "http:2381/livez", "http:2381/readyz"},
		{"3.6.0-rc.1", false, "http:2381/livez", "http:2379/readyz"},
		{"3.7.3", true, "http:2381/livez", "http:2381/readyz"},
		{"4.0.0", false, "http:2381/livez", "http:2379/readyz"},
		{"my-build", false, "http:2381/livez", "http:2379/readyz"},
	} {
		c := newCluster(version(tc.version))
		if tc.tls {
			staticTLS(c)
		}
		ctr := learn(c).Spec.Containers[0]
		for probe, want := range map[*corev1.Probe]string{ctr.StartupProbe: tc.alive, ctr.LivenessProbe: tc.alive, ctr.ReadinessProbe: tc.ready} {
			got := ""
			if h := probe.HTTPGet; h != nil {
				got = "http:" + h.Port.String() + h.Path
			} else if s := probe.TCPSocket; s != nil {
				got = "tcp:" + s.Port.String()
			}
			if got != want {
				t.Errorf("%s (TLS %v): probe %s, want %s", tc.version, tc.tls, got, want)
			}
		}
	}
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	soft := join(newCluster()).Spec
	if a := soft.Affinity.PodAntiAffinity; len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || len(a.RequiredDuringSchedulingIgnoredDuringExecution) != 0 {
		t.Errorf("default affinity: %+v", a)
	}
	if s := soft.TopologySpreadConstraints; len(s) != 1 || s[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("default spread: %+v", s)
	}
	hard := join(newCluster(policy(v1beta2.PodPolicy{AntiAffinity: true}))).Spec
	if a := hard.Affinity.PodAntiAffinity; len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 0 || len(a.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("antiAffinity: %+v", a)
	}
	own := join(newCluster(policy(v1beta2.PodPolicy{AntiAffinity: true, Affinity: &corev1.Affinity{}}))).Spec
	if own.Affinity.PodAntiAffinity != nil {
		t.Errorf("the user's affinity was added to: %+v", own.Affinity)
	}
}

func TestLabelsOfTheControllerWin(t *testing.T) {
	t.Parallel()
	c := newCluster(policy(v1beta2.PodPolicy{
		Labels:      map[string]string{LabelApp: "x", LabelCluster: "x", LabelMember: "x", LabelRole: "x", "team": "a"},
		Annotations: map[string]string{AnnotationVersion: "x"},
	}))
	pod := seed(c)
	want := map[string]string{LabelApp: AppName, LabelCluster: c.Name, LabelMember: first, LabelRole: RoleVoter, "team": "a"}
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Error(diff)
	}
	if pod.Annotations[AnnotationVersion] != "3.2.13" {
		t.Errorf("annotations: %v", pod.Annotations)
	}
	selector, err := labels.Parse(Selector(c.Name))
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("%q does not select the pod: %v", Selector(c.Name), err)
	}
}

func TestWithRoleAndVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(version("3.6.16"))
	live := learn(c)
	live.Labels["somebody"] = "else"
	voter, changed := WithRole(live, RoleVoter)
	if !changed || voter.Labels[LabelRole] != RoleVoter || voter.Labels["somebody"] != "else" || live.Labels[LabelRole] != RoleLearner {
		t.Errorf("promoted: %v %v, live %v", changed, voter.Labels, live.Labels)
	}
	if _, changed := WithRole(voter, RoleVoter); changed {
		t.Error("the role changed twice")
	}
	c.Spec.Version = "v3.7.3"
	newer, changed := WithVersion(c, live)
	if !changed || newer.Annotations[AnnotationVersion] != "3.7.3" || newer.Spec.Containers[0].Image != "quay.io/coreos/etcd:v3.7.3" {
		t.Errorf("upgraded: %v %v %s", changed, newer.Annotations, newer.Spec.Containers[0].Image)
	}
	if diff := cmp.Diff(live.Spec.Containers[0].Command, newer.Spec.Containers[0].Command); diff != "" {
		t.Errorf("a pod's arguments cannot change: %s", diff)
	}
	if _, changed := WithVersion(c, newer); changed {
		t.Error("the version changed twice")
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	c := newCluster(retain)
	other := newCluster(retain)
	other.UID = "another"
	notOwned := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: c.UID, Controller: ptr.To(false)}}}
	adopted := PVC(c, first)
	adopted.OwnerReferences = []metav1.OwnerReference{Owner(other)}
	for name, tc := range map[string]struct {
		obj         metav1.Object
		want, other bool
	}{
		"pod":                         {seed(c), true, false},
		"pod of another":              {seed(other), false, true},
		"retained PVC":                {PVC(c, first), true, false},
		"retained PVC of another":     {PVC(other, first), false, true},
		"owner that does not control": {notOwned, false, false},
		"PVC with another owner":      {adopted, false, true},
		"no owner":                    {&metav1.ObjectMeta{}, false, false},
	} {
		if got := Owns(c, tc.obj); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := HasOtherOwner(c, tc.obj); got != tc.other {
			t.Errorf("%s is owned by another cluster: %v", name, got)
		}
	}
	if Owns(&v1beta2.EtcdCluster{}, &metav1.ObjectMeta{}) {
		t.Error("a cluster without UID owns things")
	}
}

// TestEveryFieldOfThePolicy keeps the golden pod complete: a field of PodPolicy is either
// in it, or it is known not to change a pod.
func TestEveryFieldOfThePolicy(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"PersistentVolumeClaimSpec":            "pod-3.6.16-volume and PVC",
		"PersistentVolumeClaimRetentionPolicy": "claim-retained",
		"ClusterDomain":                        "TestURLs",
	}
	all := reflect.ValueOf(everyPolicy())
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if all.Field(i).IsZero() && elsewhere[name] == "" {
			t.Errorf("no golden pod has PodPolicy.%s", name)
		}
	}
	without := everyPolicy()
	without.Affinity = nil
	for name, got := range map[string]*corev1.Affinity{
		"required": Pod(newCluster(policy(without)), MemberPod{Name: first}).Spec.Affinity,
		"soft":     Pod(newCluster(), MemberPod{Name: first}).Spec.Affinity,
	} {
		anti := got.PodAntiAffinity
		if hard := len(anti.RequiredDuringSchedulingIgnoredDuringExecution) == 1; hard != (name == "required") ||
			hard == (len(anti.PreferredDuringSchedulingIgnoredDuringExecution) == 1) {
			t.Errorf("%s anti-affinity: %+v", name, anti)
		}
	}
}
