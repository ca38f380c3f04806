// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/Masterminds/semver/v3"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Annotations that reach etcd as variables each time its container starts. WithVersion changes
// them together with the image, so that a container that restarts in place has the variable that
// its version knows. etcd ignores an empty variable.
const (
	// annotationSkipPeerNames is the value of ETCD_PEER_SKIP_CLIENT_SAN_VERIFICATION, for etcd 3.6 and later:
	// members verify each other without a look-up of their names.
	annotationSkipPeerNames = "etcd.database.coreos.com/peer-skip-client-san-verification"
	// annotationSkipPeerNamesOld is the value of ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION, the same for etcd before 3.6.
	annotationSkipPeerNamesOld = "etcd.database.coreos.com/experimental-peer-skip-client-san-verification"

	envSkipPeerNames    = "ETCD_PEER_SKIP_CLIENT_SAN_VERIFICATION"
	envSkipPeerNamesOld = "ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION"
)

// versionAnnotations returns the annotations whose values the version of c decides.
func versionAnnotations(c *v1beta2.EtcdCluster) map[string]string {
	const skip = "true"
	switch {
	case !HasPeerTLS(c):
		return nil
	case featuresOf(Version(c)).peerSkipsNames:
		return map[string]string{annotationSkipPeerNames: skip, annotationSkipPeerNamesOld: ""}
	default:
		return map[string]string{annotationSkipPeerNames: "", annotationSkipPeerNamesOld: skip}
	}
}

// Versions of etcd without any of the features, and with all of them.
const featureless, featured = "3.0.0", "4.0.0"

// NeedsNewPod is true if etcd of the version that c asks for must not run in the living pod of a
// member. Then WithVersion cannot give the pod a flag, a variable or a probe that a new pod of that
// version has, or cannot take one away. What a step changes is read from the pods of both versions
// and not listed here. What does not depend on the version is not compared, so that a later
// release of the controller, or an admission policy, is no reason to create a pod again.
func NeedsNewPod(c *v1beta2.EtcdCluster, live *corev1.Pod) bool {
	m := MemberPod{Name: live.Name}
	at := func(version string) map[string]bool {
		c := c.DeepCopy()
		c.Spec.Version = version
		ctr := container(c, m)
		return settingsOf(&ctr, versionAnnotations(c))
	}
	made := live.Annotations[AnnotationVersion]
	changed, _ := WithVersion(c, live)
	want, has := at(Version(c)), settingsOf(etcdContainer(changed), changed.Annotations)
	all := []map[string]bool{want, at(featureless), at(featured), at(made)}
	for _, settings := range all {
		for s := range settings {
			everywhere := all[0][s] && all[1][s] && all[2][s] && all[3][s]
			if !everywhere && has[s] != want[s] && (!isProbe(s) || isOlder(Version(c), made)) {
				return true
			}
		}
	}
	return false
}

// probePrefix distinguishes probes from flags and variables.
const probePrefix = "probe "

// isProbe is true for the setting of a probe. A newer version responds to the probes of an older
// one, and not the other way round.
func isProbe(setting string) bool { return strings.HasPrefix(setting, probePrefix) }

// isOlder is true if both are versions and the first is lower.
func isOlder(version, than string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	other, err := semver.NewVersion(than)
	return err == nil && v.LessThan(other)
}

// settingsOf returns the flags, the variables and the probes of a container. A variable that is
// taken from an annotation has the value of the annotation; of several variables of one name
// the last one counts, and an empty one counts as absent.
func settingsOf(ctr *corev1.Container, annotations map[string]string) map[string]bool {
	settings, env := map[string]bool{}, map[string]string{}
	for _, arg := range ctr.Command {
		settings[arg] = true
	}
	for i := range ctr.Env {
		e := &ctr.Env[i]
		env[e.Name] = e.Value
		if from := e.ValueFrom; from != nil && from.FieldRef != nil {
			name, _ := strings.CutPrefix(from.FieldRef.FieldPath, annotationPathPrefix)
			env[e.Name] = annotations[strings.TrimSuffix(name, annotationPathSuffix)]
		}
	}
	for name, value := range env {
		if value != "" {
			settings[name+"="+value] = true
		}
	}
	for name, probe := range map[string]*corev1.Probe{"startup": ctr.StartupProbe, "readiness": ctr.ReadinessProbe, "liveness": ctr.LivenessProbe} {
		if probe != nil {
			settings[probePrefix+name+" "+describeHandler(&probe.ProbeHandler)] = true
		}
	}
	return settings
}

func describeHandler(h *corev1.ProbeHandler) string {
	switch {
	case h.HTTPGet != nil:
		return fmt.Sprintf("GET %s at %s", h.HTTPGet.Path, h.HTTPGet.Port.String())
	case h.TCPSocket != nil:
		return "TCP at " + h.TCPSocket.Port.String()
	default:
		return ""
	}
}
