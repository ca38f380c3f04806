// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// patched runs a command that patches the cluster, and returns the patches that were no dry run.
func patched(t *testing.T, line string, code failure.Code, clusters []any, want ...string) []string {
	t.Helper()
	server := plugintest.New(t)
	server.Put(plugintest.Path("etcdrestores"), &v1beta2.EtcdRestoreList{})
	server.On(http.MethodGet, clusterPath, sequence(clusters...))
	server.On(http.MethodPatch, clusterPath, func(*http.Request, []byte) any { return clusters[0] })
	p := newTerminal(t, server, false)
	p.expect(p.run(strings.Fields(line)...), code, want...)
	var patches []string
	for _, r := range server.Requests() {
		if !strings.HasSuffix(r.Line, "dryRun") {
			patches = append(patches, r.Body)
		}
	}
	return patches
}

func expectPatch(t *testing.T, got []string, want string) {
	t.Helper()
	if (want == "") != (len(got) == 0) || strings.Join(got, "") != want {
		t.Errorf("the patches are %q, want %q", got, want)
	}
}

// changedCluster returns a healthy cluster with a change.
func changedCluster(change func(*plugintest.State)) *v1beta2.EtcdCluster {
	s := plugintest.Healthy()
	change(s)
	return s.Cluster
}

func TestPauseAndResume(t *testing.T) {
	healthy := plugintest.Healthy().Cluster
	requested := changedCluster(func(s *plugintest.State) { s.Cluster.Spec.Paused, s.Cluster.Generation = true, 4 })
	paused := changedCluster(func(s *plugintest.State) {
		s.Cluster.Spec.Paused = true
		s.Condition(v1beta2.ClusterConditionPaused, corev1.ConditionTrue, "Requested", "")
	})
	for name, c := range map[string]struct {
		line     string
		clusters []any
		code     failure.Code
		patch    string
		want     string
	}{
		"pause": {
			line: "pause main -y", clusters: []any{healthy, requested, paused}, patch: `{"metadata":{"uid":"0b6c"},"spec":{"paused":true}}`,
			want: "prod/main is paused. End the pause: kubectl etcd resume main -n prod",
		},
		"pause, a dry run":      {line: "pause main --dry-run", clusters: []any{healthy}, want: "Nothing was changed"},
		"pause, paused already": {line: "pause main -y", clusters: []any{paused}, want: "prod/main is paused: there is nothing to do."},
		"pause, another request wins": {
			line: "pause main -y", clusters: []any{healthy, healthy}, code: failure.CodeFailed, patch: `{"metadata":{"uid":"0b6c"},"spec":{"paused":true}}`,
			want: "spec.paused of prod/main was changed by another request",
		},
		"resume": {
			line: "resume main -y", clusters: []any{paused, healthy}, patch: `{"metadata":{"uid":"0b6c"},"spec":{"paused":false}}`,
			want: "prod/main is not paused. Follow the changes that have waited: kubectl etcd status main -n prod -w",
		},
		"resume, not paused": {line: "resume main -y", clusters: []any{healthy}, want: "prod/main is not paused: there is nothing to do."},
	} {
		t.Run(name, func(t *testing.T) {
			expectPatch(t, patched(t, c.line, c.code, c.clusters, c.want), c.patch)
		})
	}
}

func TestCancel(t *testing.T) {
	const patch = `{"metadata":{"annotations":{"etcd.database.coreos.com/cancel-operation":"o7"},"uid":"0b6c"}}`
	for name, c := range map[string]struct {
		clusters []any
		patch    string
		want     []string
	}{
		"an operation that runs": {
			clusters: []any{withOperation(running), withOperation(running), withOperation(failed)}, patch: patch,
			want: []string{"Cancellation of Restart o7 of prod/main: members that are done: 1.", "Restart of prod/main has ended: members that are done: 0. main-f9x4 did not start"},
		},
		"it succeeds meanwhile":      {clusters: []any{withOperation(running), withOperation(done)}, patch: patch, want: []string{"Restart of prod/main had succeeded before it could be cancelled"}},
		"another operation is there": {clusters: []any{withOperation(running), withOperation(other)}, patch: patch, want: []string{"Restart o7 of prod/main has ended."}},
		"it is over":                 {clusters: []any{withOperation(done)}, want: []string{"No operation of prod/main is under way."}},
		"there is none":              {clusters: []any{plugintest.Healthy().Cluster}, want: []string{"No operation of prod/main is under way."}},
	} {
		t.Run(name, func(t *testing.T) {
			expectPatch(t, patched(t, "cancel main -y", failure.CodeDone, c.clusters, c.want...), c.patch)
		})
	}
}

// withCertificates returns a cluster whose CA and certificates have serial numbers. The CA was issued so long ago.
func withCertificates(ca, issuer, leaf string, age time.Duration, change func(*plugintest.State)) *v1beta2.EtcdCluster {
	return changedCluster(func(s *plugintest.State) {
		at := metav1.NewTime(plugintest.Now.Add(-age - certificates.Backdate))
		s.Cluster.Status.Certificates = []v1beta2.CertificateStatus{
			{Use: v1beta2.CertificateUseCA, Issuer: "ca-" + ca, SerialNumber: ca, NotBefore: &at, Usable: corev1.ConditionTrue},
			{Use: v1beta2.CertificateUsePeer, Issuer: "ca-" + issuer, SerialNumber: leaf, Usable: corev1.ConditionTrue},
			{Use: v1beta2.CertificateUseServer, Issuer: "ca-" + issuer, SerialNumber: leaf + "1", Usable: corev1.ConditionTrue},
		}
		for i := range s.Cluster.Status.Conditions {
			s.Cluster.Status.Conditions[i].ObservedGeneration = s.Cluster.Generation
		}
		if change != nil {
			change(s)
		}
	})
}

func requestedRotation(s *plugintest.State) {
	s.Cluster.Annotations = map[string]string{"etcd.database.coreos.com/rotate-ca": "r1"}
}

// certificatesValid sets the condition that the controller computes for a cluster with usable certificates.
func certificatesValid(s *plugintest.State, ca *certplanner.CA) {
	o := &certplanner.Observed{Now: plugintest.Now, CA: ca, Certificates: []certplanner.Certificate{
		{Use: v1beta2.CertificateUseCA, State: certplanner.Usable, NotAfter: plugintest.Now.Add(time.Hour), NotBefore: plugintest.Now},
	}}
	c := o.Condition()
	s.Condition(c.Type, c.Status, c.Reason, c.Message)
}

func TestRotateCA(t *testing.T) {
	const rotate = `{"metadata":{"annotations":{"etcd.database.coreos.com/rotate-ca":"2026-03-04T12:00:00Z"},"uid":"0b6c"}}`
	const drop = `{"metadata":{"annotations":{"etcd.database.coreos.com/drop-old-ca":"2"},"uid":"0b6c"}}`
	old := withCertificates("1", "1", "a", 900*time.Hour, nil)
	rotated := withCertificates("2", "2", "b", time.Hour, requestedRotation)
	pending := func(s *plugintest.State) {
		requestedRotation(s)
		s.Condition(v1beta2.ClusterConditionCertificatesValid, corev1.ConditionTrue, "RestartPending", "member main-f9x4 restarts")
	}
	overlapping := func(s *plugintest.State) {
		requestedRotation(s)
		certificatesValid(s, &certplanner.CA{Overlap: true})
	}
	alone := func(s *plugintest.State) {
		requestedRotation(s)
		certificatesValid(s, &certplanner.CA{})
	}
	for name, c := range map[string]struct {
		flags    string
		clusters []any
		code     failure.Code
		patch    string
		want     []string
	}{
		"another CA": {
			clusters: []any{old, old, withCertificates("2", "1", "a", time.Hour, nil), rotated}, patch: rotate,
			want: []string{"Rotation of the CA of prod/main: ", "CA ca-2 has issued all certificates of prod/main.", "kubectl etcd rotate-ca main --drop-old -n prod"},
		},
		"again within a day": {flags: "--dry-run", clusters: []any{rotated}, want: []string{"The present CA is less than a day old.", "Nothing was changed"}},
		"the old CA ends": {
			flags: "--drop-old", patch: drop,
			clusters: []any{rotated, rotated, withCertificates("2", "2", "c", time.Hour, pending), withCertificates("2", "2", "c", time.Hour, alone)},
			want:     []string{"End of the old CA of prod/main: clients with a certificate of the old CA are rejected.", "Members and clients of prod/main trust CA ca-2 only."},
		},
		"the old CA ends before a restart": {
			flags: "--drop-old --timeout=2s", patch: drop, clusters: []any{rotated, withCertificates("2", "2", "c", time.Hour, pending)},
			code: failure.CodeTimedOut, want: []string{"member main-f9x4 restarts", "the change continues"},
		},
		"the old CA ends, asked for again while members restart": {
			flags: "--drop-old", patch: drop, clusters: []any{withCertificates("2", "2", "c", time.Hour, pending), withCertificates("2", "2", "c", time.Hour, alone)},
			want: []string{"Members and clients of prod/main trust CA ca-2 only."},
		},
		"more than a day later": {flags: "--dry-run", clusters: []any{withCertificates("2", "2", "b", 25*time.Hour, requestedRotation)}, want: []string{"for a day.\nNothing was changed"}},
		"the old CA is trusted for more than a day": {
			flags: "--drop-old", patch: drop,
			clusters: []any{withCertificates("2", "2", "b", 30*time.Hour, overlapping), withCertificates("2", "2", "c", 30*time.Hour, alone)},
			want:     []string{"Members and clients of prod/main trust CA ca-2 only."},
		},
		"the CA was replaced without a request": {
			flags: "--drop-old", patch: drop,
			clusters: []any{withCertificates("2", "2", "b", time.Hour, overlapping), withCertificates("2", "2", "c", time.Hour, alone)},
			want:     []string{"Members and clients of prod/main trust CA ca-2 only."},
		},
		"the old CA ended": {
			flags: "--drop-old", patch: drop, clusters: []any{withCertificates("2", "2", "b", 30*time.Hour, alone)},
			want: []string{"shows no old CA that is still trusted", "Without an old CA it has no effect", "Members and clients of prod/main trust CA ca-2 only."},
		},
		"no CA of its own": {
			clusters: []any{changedCluster(func(s *plugintest.State) { s.Cluster.Spec.TLS = nil })}, code: failure.CodeNotMet, want: []string{"spec.TLS.auto is not set"},
		},
		"paused":       {clusters: []any{changedCluster(func(s *plugintest.State) { s.Cluster.Spec.Paused = true })}, code: failure.CodeNotMet, want: []string{"kubectl etcd resume main"}},
		"hibernated":   {clusters: []any{changedCluster(func(s *plugintest.State) { s.Cluster.Spec.Replicas = ptr.To[int32](0) })}, code: failure.CodeNotMet, want: []string{"kubectl etcd wake main"}},
		"no CA so far": {clusters: []any{plugintest.Healthy().Cluster}, code: failure.CodeNotMet, want: []string{"shows no CA yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			expectPatch(t, patched(t, "rotate-ca main -y "+c.flags, c.code, c.clusters, c.want...), c.patch)
		})
	}
}
