// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// certManagerTLS lets cert-manager issue the certificates.
func certManagerTLS(c *v1beta2.EtcdCluster) {
	c.Spec.TLS = &v1beta2.TLSPolicy{CertManager: &v1beta2.CertManagerTLS{}}
}

// everyTLS are the ways of a cluster to its certificates.
var everyTLS = map[string]func(*v1beta2.EtcdCluster){"static": staticTLS, "auto": autoTLS, "cert-manager": certManagerTLS}

// ofEarlierRelease gives a pod the one variable, for the version that it was created with, that an
// earlier release of the controller gave it. That variable cannot change in a living pod.
func ofEarlierRelease(pod *corev1.Pod, version string) *corev1.Pod {
	ctr := &pod.Spec.Containers[0]
	name := envSkipPeerNamesOld
	if featuresOf(version).peerSkipsNames {
		name = envSkipPeerNames
	}
	env := []corev1.EnvVar{{Name: name, Value: "true"}}
	for _, e := range ctr.Env {
		if e.Name != envSkipPeerNames && e.Name != envSkipPeerNamesOld {
			env = append(env, e)
		}
	}
	ctr.Env = env
	delete(pod.Annotations, annotationSkipPeerNames)
	delete(pod.Annotations, annotationSkipPeerNamesOld)
	return pod
}

// TestNeedsNewPod walks pods in place through versions, and then asks whether one more step
// needs a new pod.
func TestNeedsNewPod(t *testing.T) {
	t.Parallel()
	plain := func(*v1beta2.EtcdCluster) {}
	type walk struct {
		name    string
		tls     func(*v1beta2.EtcdCluster)
		earlier bool
		// versions: the pod was created at the first, then changed in place up to the last but one.
		versions string
		want     bool
	}
	walks := []walk{
		{"without TLS", plain, false, "3.4.30 3.5.26 3.6.11 3.7.3", false},
		{"without TLS of an earlier release", plain, true, "3.4.30 3.5.26 3.6.11 3.7.3", false},
		{"to the first version with learners", plain, false, "3.3.27 3.4.30", true},
		{"to the first version with a listener for metrics", plain, false, "3.2.13 3.3.27", true},
		{"to probes that only the newer patch release has", plain, false, "3.5.4 3.5.35", false},
		{"to a patch release without the probes of the pod", plain, false, "3.5.35 3.5.4", true},
		{"back to the patch release of the pod after a step in place", plain, false, "3.5.4 3.5.35 3.5.4", false},
		{"another repository", plain, false, "3.6.11 3.6.11", false},
		{"a tag that is no version", plain, false, "3.6.11 latest", false},
		{"the CN of peers of 3.2", autoTLS, false, "3.2.13 3.3.27", true},
	}
	for name, tls := range everyTLS {
		walks = append(walks,
			walk{name + ": up", tls, false, "3.5.26 3.6.11 3.7.3", false},
			walk{name + ": one step up and back", tls, false, "3.5.26 3.6.11 3.5.26", false},
			walk{name + ": back to before the pod was created", tls, false, "3.6.11 3.5.26", false},
			walk{name + " of an earlier release: no boundary", tls, true, "3.6.11 3.6.16", false},
			walk{name + " of an earlier release: up", tls, true, "3.5.26 3.6.11", true},
			walk{name + " of an earlier release: later", tls, true, "3.5.26 3.6.11 3.7.3", true},
			walk{name + " of an earlier release: within the newer minor version", tls, true, "3.5.26 3.6.11 3.6.16", true},
			walk{name + " of an earlier release: step taken back", tls, true, "3.5.26 3.6.11 3.5.26", false},
			walk{name + " of an earlier release: back", tls, true, "3.6.11 3.5.26", true},
			walk{name + " of an earlier release: from 3.6 up", tls, true, "3.6.11 3.7.3", false},
		)
	}
	for _, test := range walks {
		versions := strings.Fields(test.versions)
		c := newCluster(test.tls, version(versions[0]))
		pod := Pod(c, MemberPod{Name: second, Joined: true})
		if test.earlier && HasPeerTLS(c) {
			pod = ofEarlierRelease(pod, versions[0])
		}
		for _, v := range versions[1 : len(versions)-1] {
			pod, _ = WithVersion(newCluster(test.tls, version(v)), pod)
		}
		if got := NeedsNewPod(newCluster(test.tls, version(versions[len(versions)-1])), pod); got != test.want {
			t.Errorf("%s: %s needs a new pod: %t, want %t", test.name, test.versions, got, test.want)
		}
	}
}

// TestEveryVersionSkipsPeerNames reads what etcd of each version gets in a pod that went from one
// version to another in place: exactly the variable that it knows.
func TestEveryVersionSkipsPeerNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{"3.4.30": envSkipPeerNamesOld, "3.5.26": envSkipPeerNamesOld, "3.6.11": envSkipPeerNames, "3.7.3": envSkipPeerNames}
	for how, tls := range everyTLS {
		for from := range names {
			for to, want := range names {
				pod, _ := WithVersion(newCluster(tls, version(to)), Pod(newCluster(tls, version(from)), MemberPod{Name: second, Joined: true}))
				settings := settingsOf(&pod.Spec.Containers[0], pod.Annotations)
				for _, name := range []string{envSkipPeerNames, envSkipPeerNamesOld} {
					if settings[name+"=true"] != (name == want) {
						t.Errorf("%s, %s to %s: variable %s is set: %t", how, from, to, name, settings[name+"=true"])
					}
				}
			}
		}
	}
}

// TestNeedsNewPodWhateverElseDiffers: only what the version decides is compared.
func TestNeedsNewPodWhateverElseDiffers(t *testing.T) {
	t.Parallel()
	pod := Pod(newCluster(staticTLS, version("3.5.26")), MemberPod{Name: second, InitialCluster: []Peer{{Name: second, URL: "u"}}, PeerFormat: FormatKubernetes})
	ctr := &pod.Spec.Containers[0]
	ctr.Command = append(ctr.Command, "--flag-of-a-policy")
	ctr.Env = append(ctr.Env, corev1.EnvVar{Name: "OF_A_MESH", Value: "1"})
	ctr.LivenessProbe.FailureThreshold = 99
	if NeedsNewPod(newCluster(staticTLS, version("3.6.11")), pod) {
		t.Error("what does not depend on the version counts")
	}
	user := func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: envSkipPeerNames, Value: "false"}}}
	}
	pod = ofEarlierRelease(Pod(newCluster(staticTLS, version("3.6.11"), user), MemberPod{Name: second}), "3.6.11")
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: envSkipPeerNames, Value: "false"})
	if NeedsNewPod(newCluster(staticTLS, version("3.7.3"), user), pod) {
		t.Error("a variable that the user decides counts")
	}
}
