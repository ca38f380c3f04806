// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestClusterUpdate(t *testing.T) {
	const volumes = "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}"
	pvc := func(fields string) string {
		return "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], " + fields + "}}"
	}
	const at = "spec.pod.persistentVolumeClaimSpec"
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"nothing", "", "", nil},
		{"any size", "size: 1", "size: 7", nil},
		{"down by any number", "size: 7", "size: 1", nil},
		{"to sleep", "{size: 3, " + volumes + "}", "{size: 0, " + volumes + "}", nil},
		{"awake", "{size: 0, " + volumes + "}", "{size: 5, " + volumes + "}", nil},
		{"to sleep without volumes", "size: 3", "size: 0", []string{"Invalid spec.size"}},
		{"everything else", "", "{repository: registry.example.com/etcd, paused: true, podDisruptionBudget: Disabled, deletionProtection: true, etcd: {snapshotCount: 1}, pod: {antiAffinity: true}}", nil},

		{"a domain", "", "pod: {ClusterDomain: .cluster.local}", []string{"Forbidden spec.pod.ClusterDomain"}},
		{"another domain", "pod: {ClusterDomain: .a.b}", "pod: {ClusterDomain: .c.d}", []string{"Forbidden spec.pod.ClusterDomain"}},
		{"no domain any more", "pod: {ClusterDomain: .a.b}", "", []string{"Forbidden spec.pod.ClusterDomain"}},
		{"the same domain", "pod: {ClusterDomain: .a.b}", "pod: {ClusterDomain: .a.b, antiAffinity: true}", nil},

		{"volumes added", "", volumes, []string{"Forbidden " + at}},
		{"volumes removed", volumes, "pod: {}", []string{"Forbidden " + at}},
		{"volumes removed with the policy", volumes, "", []string{"Forbidden " + at}},
		{"volumes grow", volumes, pvc("resources: {requests: {storage: 3Gi}}"), nil},
		{"same size, other unit", volumes, pvc("resources: {requests: {storage: 2048Mi}}"), nil},
		{"volumes shrink", volumes, pvc("resources: {requests: {storage: 1Gi}}"), []string{"Invalid " + at + ".resources.requests[storage]"}},
		{"volumes beyond writing out", volumes, pvc("resources: {requests: {storage: 1e999999999}}"), []string{"Invalid " + at + ".resources.requests[storage]"}},
		{"volumes that were beyond writing out", pvc("resources: {requests: {storage: 1e999999999}}"), volumes, nil},
		{"attributes class", volumes, pvc("resources: {requests: {storage: 2Gi}}, volumeAttributesClassName: gold"), nil},
		{"class", volumes, pvc("resources: {requests: {storage: 2Gi}}, storageClassName: fast"), []string{"Forbidden " + at + ".storageClassName"}},
		{"implied mode", volumes, pvc("resources: {requests: {storage: 2Gi}}, volumeMode: Filesystem"), nil},
		{"mode", volumes, pvc("resources: {requests: {storage: 2Gi}}, volumeMode: Block"), []string{"NotSupported " + at + ".volumeMode", "Forbidden " + at + ".volumeMode"}},
		{"selector", volumes, pvc("resources: {requests: {storage: 2Gi}}, selector: {matchLabels: {a: b}}"), []string{"Forbidden " + at + ".selector"}},
		{"access", volumes, "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 2Gi}}}}", []string{"Forbidden " + at + ".accessModes"}},
		{"volume name, still wrong", pvc("resources: {requests: {storage: 2Gi}}, volumeName: a"), pvc("resources: {requests: {storage: 2Gi}}, volumeName: b"), []string{"Forbidden " + at + ".volumeName"}},
		{"data source, still wrong", pvc("resources: {requests: {storage: 2Gi}}, dataSource: {name: a}, dataSourceRef: {name: a}"), pvc("resources: {requests: {storage: 2Gi}}, dataSource: {name: b}, dataSourceRef: {name: b}"),
			[]string{"Forbidden " + at + ".dataSource", "Forbidden " + at + ".dataSourceRef"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdClusterUpdate(cluster(t, c.to), cluster(t, c.from)), c.want...)
		})
	}
}

func TestTLSChange(t *testing.T) {
	const (
		none    = "TLS: {static: {}}"
		both    = "TLS: {static: {operatorSecret: o, member: {serverSecret: s, peerSecret: p}}}"
		clients = "TLS: {static: {operatorSecret: o, member: {serverSecret: s}}}"
		peers   = "TLS: {static: {member: {peerSecret: p}}}"
		auto    = "TLS: {auto: {}}"
		issued  = "TLS: {certManager: {issuerRef: {name: a}}}"

		onOff = "may not be switched on or off"
	)
	for _, c := range []struct{ name, from, to, message string }{
		{"secrets renamed", both, "TLS: {static: {operatorSecret: a, member: {serverSecret: b, peerSecret: c}}}", ""},
		{"the same issuer", "TLS: {certManager: {issuerRef: {name: a}}}", issued, ""},
		{"another issuer", "TLS: {certManager: {issuerRef: {name: b}}}", issued, "may not change"},
		{"another kind of issuer", "TLS: {certManager: {issuerRef: {name: a, kind: ClusterIssuer}}}", issued, "may not change"},
		{"nothing into nothing", "", none, ""},
		{"nothing into nothing, otherwise", "TLS: {}", none, ""},
		{"on", "", both, onOff},
		{"on, clients", "", clients, onOff},
		{"on, peers", none, peers, onOff},
		{"on, auto", "TLS: {}", auto, onOff},
		{"on, certManager", "", issued, onOff},
		{"off", both, "", onOff},
		{"off, clients", clients, "", onOff},
		{"off, peers", peers, none, onOff},
		{"off, auto", auto, "", onOff},
		{"off, certManager", issued, none, onOff},
		{"peers too", clients, both, onOff},
		{"clients too", peers, auto, onOff},
		{"clients no more", both, peers, onOff},
		{"static to auto", both, auto, "may not change from static to auto"},
		{"auto to certManager", auto, issued, "may not change from auto to certManager"},
		{"certManager to static", issued, both, "may not change from certManager to static"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			errs := ValidateEtcdClusterUpdate(cluster(t, c.to), cluster(t, c.from))
			if c.message == "" {
				expect(t, errs)
				return
			}
			at := "spec.TLS"
			if c.to == issued && strings.Contains(c.from, "certManager") {
				at += ".certManager.issuerRef"
			}
			expect(t, errs, "Forbidden "+at)
			if !strings.Contains(errs[0].Detail, c.message) || !strings.Contains(errs[0].Detail, "make a new EtcdCluster") {
				t.Errorf("message: %s", errs[0].Detail)
			}
		})
	}
}

func TestClusterUpdateOfMetadata(t *testing.T) {
	from := cluster(t, "")
	to := from.DeepCopy()
	to.UID = "changed"
	expect(t, ValidateEtcdClusterUpdate(to, from), "Invalid metadata.uid")
}

func TestVersionChange(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		phase          v1beta2.ClusterPhase
		running        string
		rejected       bool
	}{
		{name: "same", from: "3.5.1", to: "3.5.1"},
		{name: "same, written otherwise", from: "3.5.1", to: "v3.5.1"},
		{name: "same, while the members lag", from: "3.6.8", to: "3.6.8", phase: v1beta2.ClusterPhaseRunning, running: "3.4.0"},
		{name: "patch up", from: "3.5.1", to: "3.5.21"},
		{name: "patch down", from: "3.5.21", to: "3.5.1"},
		{name: "one minor up", from: "3.5.26", to: "3.6.0"},
		{name: "pre-release of the next", from: "3.5.26", to: "3.6.0-rc.1"},
		{name: "one minor up from any patch that is safe", from: "3.4.0", to: "3.5.35"},
		{name: "to 3.6 from a 3.5 that loses promotions", from: "3.5.25", to: "3.6.16", rejected: true},
		{name: "to 3.6 while one member still runs that", from: "3.5.35", to: "3.6.16", phase: v1beta2.ClusterPhaseRunning, running: "3.5.25", rejected: true},
		{name: "to 3.7 from a 3.6 that is too old for it", from: "3.6.10", to: "3.7.3", rejected: true},
		{name: "to 3.6 from a build of a 3.5 that is safe", from: "3.5.26-arm64", to: "3.6.16", phase: v1beta2.ClusterPhaseRunning, running: "3.5.26-arm64"},
		{name: "to 3.6 from a build of a 3.5 that loses promotions", from: "3.5.25-arm64", to: "3.6.16", rejected: true},
		{name: "to 3.7 from a pre-release of the first that is safe", from: "3.6.11-rc.0", to: "3.7.3", rejected: true},
		{name: "to 3.7 from one that is not", from: "3.6.11", to: "3.7.3"},
		{name: "two minors up", from: "3.4.0", to: "3.6.0", rejected: true},
		{name: "one minor down", from: "3.6.8", to: "3.5.21", rejected: true},
		{name: "upgrade that has not begun", from: "3.5.26", to: "3.6.8", phase: v1beta2.ClusterPhaseRunning, running: "3.5.26"},
		{name: "second upgrade before the first is done", from: "3.5.21", to: "3.6.8", phase: v1beta2.ClusterPhaseRunning, running: "3.4.30", rejected: true},
		{name: "stuck upgrade taken back", from: "3.6.99", to: "3.5.21", phase: v1beta2.ClusterPhaseRunning, running: "3.5.21"},
		{name: "finished upgrade taken back", from: "3.6.8", to: "3.5.21", phase: v1beta2.ClusterPhaseRunning, running: "3.6.8", rejected: true},
		{name: "downgrade of an upgrade that is under way", from: "3.6.8", to: "3.4.30", phase: v1beta2.ClusterPhaseRunning, running: "3.5.21", rejected: true},
		{name: "what runs is not known", from: "3.6.8", to: "3.5.21", phase: v1beta2.ClusterPhaseRunning, rejected: true},
		{name: "what runs is not a version", from: "3.6.8", to: "3.5.21", phase: v1beta2.ClusterPhaseRunning, running: "?", rejected: true},
		{name: "nothing has run yet", from: "3.9.0", to: "3.5.21", phase: v1beta2.ClusterPhaseCreating},
		{name: "the bootstrap member runs", from: "3.6.8", to: "3.4.0", phase: v1beta2.ClusterPhaseCreating, running: "3.6.8", rejected: true},
		{name: "failed", from: "3.6.8", to: "3.4.0", phase: v1beta2.ClusterPhaseFailed, rejected: true},
		{name: "away from what was never a version", from: "latest", to: "3.6.8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			from, to := cluster(t, "version: "+c.from), cluster(t, "version: "+c.to)
			from.Status.Phase, from.Status.CurrentVersion = c.phase, c.running
			var want []string
			if c.rejected {
				want = []string{"Invalid spec.version"}
			}
			expect(t, ValidateEtcdClusterUpdate(to, from), want...)
		})
	}
	expect(t, ValidateEtcdClusterUpdate(cluster(t, "version: x"), cluster(t, "version: 3.6.8")), "Invalid spec.version")
	expect(t, ValidateEtcdClusterUpdate(cluster(t, "version: 4.0.0"), cluster(t, "version: 3.6.8")), "Invalid spec.version")
}

// TestGrowthTakenBack declares larger volumes, which are not allowed to grow, and takes
// that back.
func TestGrowthTakenBack(t *testing.T) {
	t.Parallel()
	pvc := func(size string) string {
		return "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}}"
	}
	const at = "Invalid spec.pod.persistentVolumeClaimSpec.resources.requests[storage]"
	for name, c := range map[string]struct {
		condition v1beta2.ClusterCondition
		want      []string
	}{
		"refused":      {v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionVolumesAsDeclared, Status: "False", Reason: v1beta2.ReasonGrowthRejected}, nil},
		"growing":      {v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionVolumesAsDeclared, Status: "False", Reason: "Growing"}, []string{at}},
		"was rejected": {v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionVolumesAsDeclared, Status: "True", Reason: v1beta2.ReasonGrowthRejected}, []string{at}},
		"other":        {v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionDegraded, Status: "False", Reason: v1beta2.ReasonGrowthRejected}, []string{at}},
	} {
		from := cluster(t, pvc("2Gi"))
		from.Status.Conditions = []v1beta2.ClusterCondition{c.condition}
		if errs := ValidateEtcdClusterUpdate(cluster(t, pvc("1Gi")), from); len(errs) != len(c.want) {
			t.Errorf("%s: %v", name, errs)
		} else {
			expect(t, errs, c.want...)
		}
	}
}

// An object that was stored before a rule existed stays editable.
func TestRatchet(t *testing.T) {
	const wrong = "{size: 9, version: latest, pod: {labels: {app: x}, etcdEnv: [{name: A}, {name: 'A B'}]}, TLS: {static: {operatorSecret: o}}, etcd: {extraArgs: [--name=x, --data-dir=/, --log-level=info]}}"
	expect(t, ValidateEtcdCluster(cluster(t, wrong)), "Invalid spec.size", "Invalid spec.version", "Forbidden spec.pod.labels[app]", "Invalid spec.pod.etcdEnv[1].name",
		"Required spec.TLS.static.member.serverSecret", "Forbidden spec.etcd.extraArgs[0]", "Forbidden spec.etcd.extraArgs[1]")

	old := cluster(t, wrong)
	old.Name = strings.Repeat("a", 60)
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	expect(t, ValidateEtcdClusterUpdate(labelled, old))

	old.Finalizers = []string{"example.com/cleanup"}
	now := metav1.NewTime(time.Unix(0, 0))
	old.DeletionTimestamp = &now
	released := old.DeepCopy()
	released.Finalizers = nil
	expect(t, ValidateEtcdClusterUpdate(released, old))

	moved := old.DeepCopy()
	moved.Spec.Etcd.ExtraArgs = moved.Spec.Etcd.ExtraArgs[1:]
	moved.Spec.Pod.EtcdEnv = moved.Spec.Pod.EtcdEnv[1:]
	expect(t, ValidateEtcdClusterUpdate(moved, old))

	worse := old.DeepCopy()
	worse.Spec.Etcd.ExtraArgs = append(worse.Spec.Etcd.ExtraArgs, "--wal-dir=/")
	*worse.Spec.Replicas = 10
	expect(t, ValidateEtcdClusterUpdate(worse, old), "Invalid spec.size", "Forbidden spec.etcd.extraArgs[3]")
}

// A response stays small, however much is wrong.
func TestErrorsAreBounded(t *testing.T) {
	c := cluster(t, "etcd: {}")
	c.Spec.Repository = strings.Repeat("a", 200) + strings.Repeat(" ", 50)
	c.Spec.Version = strings.Repeat("3", 1<<20)
	c.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"etcd_" + strings.Repeat("a", 1<<20): "", strings.Repeat("b", 1<<20): strings.Repeat("c", 1<<20)}}
	for i := range 5000 {
		c.Spec.Etcd.ExtraArgs = append(c.Spec.Etcd.ExtraArgs, fmt.Sprintf("not an argument %d", i))
	}
	errs := ValidateEtcdCluster(c)
	if len(errs) != maxErrors+1 || errs[maxErrors].Field != "..." || !strings.Contains(errs[maxErrors].Detail, "more errors") {
		t.Errorf("got %d errors", len(errs))
	}
	if size := len(errs.ToAggregate().Error()); size > 64<<10 {
		t.Errorf("response has %d bytes", size)
	}

	c = cluster(t, "{size: 9, etcd: {}}")
	for i := range maxErrors - 1 {
		c.Spec.Etcd.ExtraArgs = append(c.Spec.Etcd.ExtraArgs, fmt.Sprintf("not an argument %d", i))
	}
	errs = ValidateEtcdCluster(c)
	if len(errs) != maxErrors {
		t.Errorf("got %d errors", len(errs))
	}
	if errs[0].BadValue != int32(9) {
		t.Errorf("a number became %#v", errs[0].BadValue)
	}
	if text := strings.Repeat("ä", maxEchoed/2); echo(text) != text || echo(text+"b") != text+"..." || echo("b"+text) != "b"+text[:maxEchoed-2]+"..." {
		t.Error("a wrong value is cut in the wrong place")
	}
}
