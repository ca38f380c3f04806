// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
)

func TestEtcdOptions(t *testing.T) {
	const at = "spec.etcd."
	runClusterCases(t, []specCase{
		{"empty", "etcd: {}", nil},
		{"everything", "etcd: {quotaBackendBytes: 8Gi, autoCompaction: {mode: Periodic, retention: 1h}, snapshotCount: 10000, heartbeatInterval: 200ms, electionTimeout: 2s, extraArgs: [--max-request-bytes=1048576, --enable-pprof]}", nil},
		{"quota of a fraction", "etcd: {quotaBackendBytes: 1.5Gi}", nil},
		{"quota of part of a byte", "etcd: {quotaBackendBytes: 2000000.5}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"quota without a unit", "etcd: {quotaBackendBytes: 8}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"least quota", "etcd: {quotaBackendBytes: 1Mi}", nil},
		{"no quota", "etcd: {quotaBackendBytes: 0}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"negative quota", "etcd: {quotaBackendBytes: -1Gi}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"quota beyond counting", "etcd: {quotaBackendBytes: 9223372036854775808}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"no snapshots", "etcd: {snapshotCount: 0}", []string{"Invalid " + at + "snapshotCount"}},
		{"quota beyond writing out", "etcd: {quotaBackendBytes: 1e999999999}", []string{"Invalid " + at + "quotaBackendBytes"}},
		{"each write a snapshot", "etcd: {snapshotCount: 1}", nil},

		{"by revision", "etcd: {autoCompaction: {mode: Revision, retention: '10000'}}", nil},
		{"one revision", "etcd: {autoCompaction: {mode: Revision, retention: '1'}}", nil},
		{"revisions beyond counting", "etcd: {autoCompaction: {mode: Revision, retention: '9223372036854775808'}}", []string{"Invalid " + at + "autoCompaction.retention"}},
		{"no mode", "etcd: {autoCompaction: {retention: 1h}}", []string{"Required " + at + "autoCompaction.mode"}},
		{"unknown mode", "etcd: {autoCompaction: {mode: periodic, retention: 1h}}", []string{"NotSupported " + at + "autoCompaction.mode"}},
		{"no unit", "etcd: {autoCompaction: {mode: Periodic, retention: '1'}}", []string{"Invalid " + at + "autoCompaction.retention"}},
		{"no time", "etcd: {autoCompaction: {mode: Periodic, retention: 0s}}", []string{"Invalid " + at + "autoCompaction.retention"}},
		{"no retention", "etcd: {autoCompaction: {mode: Periodic}}", []string{"Invalid " + at + "autoCompaction.retention"}},
		{"revisions with a unit", "etcd: {autoCompaction: {mode: Revision, retention: 1h}}", []string{"Invalid " + at + "autoCompaction.retention"}},
		{"no revisions", "etcd: {autoCompaction: {mode: Revision, retention: '0'}}", []string{"Invalid " + at + "autoCompaction.retention"}},

		{"exactly five heartbeats", "etcd: {heartbeatInterval: 1s, electionTimeout: 5s}", nil},
		{"less than five heartbeats", "etcd: {heartbeatInterval: 1s, electionTimeout: 4999ms}", []string{"Invalid " + at + "electionTimeout"}},
		{"five of etcd's own heartbeats", "etcd: {electionTimeout: 500ms}", nil},
		{"less than five of etcd's own heartbeats", "etcd: {electionTimeout: 499ms}", []string{"Invalid " + at + "electionTimeout"}},
		{"a fifth of etcd's own timeout", "etcd: {heartbeatInterval: 200ms}", nil},
		{"more than a fifth of etcd's own timeout", "etcd: {heartbeatInterval: 201ms}", []string{"Invalid " + at + "heartbeatInterval"}},
		{"longest election", "etcd: {electionTimeout: 50s}", nil},
		{"too long an election", "etcd: {electionTimeout: 50001ms}", []string{"Invalid " + at + "electionTimeout"}},
		{"endless", "etcd: {heartbeatInterval: 2000000h, electionTimeout: 50s}", []string{"Invalid " + at + "electionTimeout"}},
		{"no time at all", "etcd: {heartbeatInterval: 0s, electionTimeout: -1s}", []string{"Invalid " + at + "heartbeatInterval", "Invalid " + at + "electionTimeout"}},
		{"parts of milliseconds", "etcd: {heartbeatInterval: 1500us, electionTimeout: 1000000500ns}", []string{"Invalid " + at + "heartbeatInterval", "Invalid " + at + "electionTimeout"}},
	})
}

func TestExtraArgs(t *testing.T) {
	for _, arg := range []string{
		"--enable-pprof", "--max-request-bytes=1", "--experimental-initial-corrupt-check=true", "--feature-gates=A=true,B=false", "--cipher-suites=", "--initial-election-tick-advance=false",
		"--log-level=debug", "--max-snapshots=5", "--unsafe-no-fsync", "--cors=https://a.example", "--peer-cert-allowed-cn=a", "--pre-vote=true", "--metrics=extensive", "--auth-token=$(id)", "--log-outputs=stderr",
	} {
		c := cluster(t, "etcd: {}")
		c.Spec.Etcd.ExtraArgs = []string{arg}
		expect(t, ValidateEtcdCluster(c))
	}
	for _, arg := range []string{
		"", "-", "--", "--=x", "enable-pprof", "-enable-pprof", "--Enable-Pprof", "--enable_pprof", "---enable-pprof", "--enable-pprof true", "--enable-pprof ", " --enable-pprof", "--a=b c", "--a=b\tc",
		"--a=b\nc", "--a=b\x00", "--a\n--name=evil", "--a=\u0085", "--a=b\u00a0c", "--1a", "value", "/bin/sh",
	} {
		c := cluster(t, "etcd: {}")
		c.Spec.Etcd.ExtraArgs = []string{arg}
		expect(t, ValidateEtcdCluster(c), "Invalid spec.etcd.extraArgs[0]")
	}
	for _, name := range []string{
		"name", "data-dir", "wal-dir", "initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state", "initial-cluster-token", "listen-peer-urls", "listen-client-urls",
		"listen-client-http-urls", "listen-metrics-urls", "advertise-client-urls", "cert-file", "key-file", "ca-file", "trusted-ca-file", "client-cert-auth", "client-cert-file", "client-key-file",
		"client-crl-file", "auto-tls", "peer-cert-file", "peer-key-file", "peer-ca-file", "peer-trusted-ca-file", "peer-client-cert-auth", "peer-client-cert-file", "peer-client-key-file",
		"peer-crl-file", "peer-auto-tls", "self-signed-cert-validity", "strict-reconfig-check", "max-learners", "experimental-max-learners", "force-new-cluster", "force-new-cluster-bump-amount",
		"config-file", "proxy", "proxy-refresh-interval", "discovery", "discovery-srv", "discovery-token", "help", "h", "version",
		"quota-backend-bytes", "auto-compaction-mode", "auto-compaction-retention", "snapshot-count", "heartbeat-interval", "election-timeout",
	} {
		for _, arg := range []string{"--" + name, "--" + name + "=x"} {
			c := cluster(t, "etcd: {}")
			c.Spec.Etcd.ExtraArgs = []string{"--enable-pprof", arg}
			expect(t, ValidateEtcdCluster(c), "Forbidden spec.etcd.extraArgs[1]")
		}
	}
}

// TestExperimentalFlags: etcd 3.7 ends at them, so they are replaced before the version is declared.
func TestExperimentalFlags(t *testing.T) {
	old := cluster(t, "{version: 3.6.16, etcd: {extraArgs: [--experimental-initial-corrupt-check=true]}}")
	expect(t, ValidateEtcdCluster(old))
	next := old.DeepCopy()
	next.Spec.Version = "3.7.0-rc.1"
	expect(t, ValidateEtcdCluster(next), "Forbidden spec.etcd.extraArgs[0]")
	expect(t, ValidateEtcdClusterUpdate(next, old), "Forbidden spec.etcd.extraArgs[0]")
	relabeled := next.DeepCopy()
	relabeled.Labels = map[string]string{"team": "data"}
	expect(t, ValidateEtcdClusterUpdate(relabeled, next))
	next.Spec.Etcd.ExtraArgs[0] = "--feature-gates=InitialCorruptCheck=true"
	expect(t, ValidateEtcdClusterUpdate(next, old))
}

func TestExtraArgsTogether(t *testing.T) {
	c := cluster(t, "etcd: {extraArgs: [--log-level=info, --enable-pprof, --log-level=debug, --enable-pprof=false]}")
	expect(t, ValidateEtcdCluster(c), "Duplicate spec.etcd.extraArgs[2]", "Duplicate spec.etcd.extraArgs[3]")
	c.Spec.Etcd.ExtraArgs = []string{"--a=" + strings.Repeat("a", maxArgLength-4)}
	expect(t, ValidateEtcdCluster(c))
	c.Spec.Etcd.ExtraArgs[0] += "a"
	expect(t, ValidateEtcdCluster(c), "TooLong spec.etcd.extraArgs[0]")
}

// A flag that etcd's typed option stands for must be rejected with the field to use.
func TestExtraArgsNameTheWayOut(t *testing.T) {
	errs := ValidateEtcdCluster(cluster(t, "etcd: {extraArgs: [--quota-backend-bytes=1]}"))
	if text := errs.ToAggregate().Error(); !strings.Contains(text, "set spec.etcd.quotaBackendBytes instead") {
		t.Errorf("no way out in: %s", text)
	}
}
