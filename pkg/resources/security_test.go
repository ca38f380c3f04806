// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// restricted returns how a pod breaks the Pod Security Standard "restricted". It
// knows the fields that this package and its users can set.
func restricted(pod *corev1.Pod) []string {
	var broken []string
	reject := func(bad bool, format string, args ...any) {
		if bad {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	spec := &pod.Spec
	reject(spec.HostNetwork || spec.HostPID || spec.HostIPC, "host namespaces")
	for _, v := range spec.Volumes {
		s := v.VolumeSource
		allowed := s.ConfigMap != nil || s.CSI != nil || s.DownwardAPI != nil || s.EmptyDir != nil || s.Ephemeral != nil ||
			s.PersistentVolumeClaim != nil || s.Projected != nil || s.Secret != nil
		reject(!allowed, "volume %s: type", v.Name)
	}
	psc := ptr.Deref(spec.SecurityContext, corev1.PodSecurityContext{})
	reject(len(psc.Sysctls) > 0, "sysctls")
	reject(ptr.Deref(psc.RunAsUser, 1) == 0, "pod runs as user 0")
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		sc := ptr.Deref(c.SecurityContext, corev1.SecurityContext{})
		reject(ptr.Deref(sc.Privileged, false), "%s: privileged", c.Name)
		reject(ptr.Deref(sc.AllowPrivilegeEscalation, true), "%s: may gain privileges", c.Name)
		reject(ptr.Deref(sc.RunAsUser, 1) == 0, "%s: runs as user 0", c.Name)
		reject(!ptr.Deref(sc.RunAsNonRoot, ptr.Deref(psc.RunAsNonRoot, false)), "%s: may run as root", c.Name)
		caps := ptr.Deref(sc.Capabilities, corev1.Capabilities{})
		reject(!slices.Contains(caps.Drop, "ALL"), "%s: keeps capabilities", c.Name)
		for _, a := range caps.Add {
			reject(a != "NET_BIND_SERVICE", "%s: adds %s", c.Name, a)
		}
		reject(ptr.Deref(sc.ProcMount, corev1.DefaultProcMount) != corev1.DefaultProcMount, "%s: proc mount", c.Name)
		seccomp := sc.SeccompProfile
		if seccomp == nil {
			seccomp = psc.SeccompProfile
		}
		reject(seccomp == nil || (seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault && seccomp.Type != corev1.SeccompProfileTypeLocalhost),
			"%s: seccomp", c.Name)
		for _, p := range c.Ports {
			reject(p.HostPort != 0, "%s: host port", c.Name)
		}
	}
	return broken
}

// everyCluster returns clusters with all that can make a difference to a pod.
func everyCluster() map[string]*v1beta2.EtcdCluster {
	out := map[string]*v1beta2.EtcdCluster{}
	changes := map[string]func(*v1beta2.EtcdCluster){
		"plain": func(*v1beta2.EtcdCluster) {}, "static": staticTLS, "auto": autoTLS, "volumes": volumes, "retain": retain,
		"options": everyOption, "policy": policy(everyPolicy()), "required": policy(v1beta2.PodPolicy{AntiAffinity: true}),
	}
	for _, v := range []string{"3.1.10", "3.2.13", "3.3.12", "3.4.20", "3.4.29", "3.5.2", "3.5.4", "3.5.35", "3.6.16", "3.7.3", "latest"} {
		for name, change := range changes {
			out[v+"/"+name] = newCluster(version(v), change)
		}
	}
	return out
}

func TestPodsPassRestricted(t *testing.T) {
	t.Parallel()
	for name, c := range everyCluster() {
		for kind, pod := range map[string]*corev1.Pod{"seed": seed(c), "join": join(c), "learn": learn(c)} {
			if broken := restricted(pod); len(broken) > 0 {
				t.Errorf("%s/%s: %v", name, kind, broken)
			}
		}
	}
}

func TestRestrictedCheckerRejects(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*corev1.Pod){
		"host network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"host path": func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}
		},
		"root":         func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = ptr.To[int64](0) },
		"maybe root":   func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = nil },
		"no seccomp":   func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"privileges":   func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"capabilities": func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.Capabilities = nil },
		"host port":    func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 2380 },
	} {
		pod := seed(newCluster())
		breakIt(pod)
		if len(restricted(pod)) != 1 {
			t.Errorf("%s: %v", name, restricted(pod))
		}
	}
}

func TestSecurityContextsAreMergedFieldByField(t *testing.T) {
	t.Parallel()
	given := v1beta2.PodPolicy{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0), FSGroup: ptr.To[int64](77), Sysctls: []corev1.Sysctl{{Name: "a", Value: "b"}}},
		ContainerSecurityContext: &corev1.SecurityContext{
			Privileged:   ptr.To(true),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_NICE"}},
		},
	}
	pod := seed(newCluster(policy(given)))
	psc, sc := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if *psc.RunAsUser != 0 || *psc.RunAsNonRoot || *psc.FSGroup != 77 || len(psc.Sysctls) != 1 {
		t.Errorf("the pod lost what the user asked for: %+v", psc)
	}
	if *psc.RunAsGroup != nonRootID || psc.SeccompProfile == nil {
		t.Errorf("the pod lost defaults: %+v", psc)
	}
	// The API rejects a privileged container that may not gain privileges.
	if !*sc.Privileged || !*sc.AllowPrivilegeEscalation || len(sc.Capabilities.Drop) != 0 || !*sc.ReadOnlyRootFilesystem {
		t.Errorf("container: %+v", sc)
	}
	if given.SecurityContext.RunAsGroup != nil || given.ContainerSecurityContext.ReadOnlyRootFilesystem != nil {
		t.Error("the user's own object was changed")
	}
}

// TestRecoveryPodReadsBackupsOfAVolume: Jobs have stored them as nonRootID, whatever user the cluster declares.
func TestRecoveryPodReadsBackupsOfAVolume(t *testing.T) {
	t.Parallel()
	volume := &v1beta2.BackupPlace{
		StorageType:   v1beta2.BackupStorageTypePersistentVolumeClaim,
		RestoreSource: v1beta2.RestoreSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
	}
	bucket := &v1beta2.BackupPlace{
		StorageType:   v1beta2.BackupStorageTypeS3,
		RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws"}},
	}
	own := func(groups ...int64) *corev1.PodSecurityContext {
		return &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), RunAsGroup: ptr.To[int64](8), FSGroup: ptr.To[int64](9), SupplementalGroups: groups}
	}
	for name, test := range map[string]struct {
		from     *v1beta2.BackupPlace
		own      *corev1.PodSecurityContext
		platform Platform
		want     []int64
	}{
		"the defaults have it":      {volume, nil, Platform{}, nil},
		"another user":              {volume, own(), Platform{}, []int64{nonRootID}},
		"another user with groups":  {volume, own(5), Platform{}, []int64{5, nonRootID}},
		"the user has the group":    {volume, own(nonRootID), Platform{}, []int64{nonRootID}},
		"a bucket":                  {bucket, own(5), Platform{}, []int64{5}},
		"the user of the namespace": {volume, own(5), Platform{UserOfNamespace: true}, []int64{5}},
	} {
		c := newCluster(policy(v1beta2.PodPolicy{SecurityContext: test.own}))
		pod, err := RecoveryPod(c, recovery(func(r *v1beta2.RecoveryStatus) { r.Source = v1beta2.RecoverySource{Restore: "r", Backup: test.from} }), MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		if got := test.platform.Member(c, pod).Spec.SecurityContext.SupplementalGroups; !slices.Equal(got, test.want) {
			t.Errorf("%s: the groups are %v, want %v", name, got, test.want)
		}
		if test.own != nil && slices.Contains(test.own.SupplementalGroups, nonRootID) != (name == "the user has the group") {
			t.Errorf("%s: the cluster itself was changed", name)
		}
	}
}
