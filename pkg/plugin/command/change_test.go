// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// sequence returns one object after the other, and then the last one again and again.
func sequence(objects ...any) plugintest.Handler {
	next := 0
	return func(*http.Request, []byte) any {
		object := objects[min(next, len(objects)-1)]
		next++
		return object
	}
}

// withOperation returns a cluster with an operation.
func withOperation(op v1beta2.ClusterOperation) *v1beta2.EtcdCluster {
	c := plugintest.Healthy().Cluster
	c.Status.Operation = &op
	return c
}

var (
	clusterPath = plugintest.Path("etcdclusters", "main")
	running     = v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: "o7", Phase: v1beta2.OperationRunning, Message: "waits for main-f9x4",
		Results: []v1beta2.OperationResult{{Member: "main-q3m8", State: v1beta2.OperationSucceeded}, {Member: "main-f9x4", State: v1beta2.OperationRunning}}}
	done = v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: "o7", Phase: v1beta2.OperationSucceeded, Results: []v1beta2.OperationResult{
		{Member: "main-q3m8", State: v1beta2.OperationSucceeded, DBSizeBefore: 3 << 20, DBSizeAfter: 1 << 20}}}
	failed = v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: "o7", Phase: v1beta2.OperationFailed, Message: "main-f9x4 did not start"}
	other  = v1beta2.ClusterOperation{Type: v1beta2.OperationDefrag, ID: "o8", Phase: v1beta2.OperationRunning}
)

// TestChange goes through the plan, the question, the request and the wait, with a restart.
func TestChange(t *testing.T) {
	const ask, dryAsk = "POST /apis/etcd.database.coreos.com/v1beta2/namespaces/prod/etcdclusters/main/restart", "POST /apis/etcd.database.coreos.com/v1beta2/namespaces/prod/etcdclusters/main/restart dryRun"
	unavailable := apierrors.NewServiceUnavailable("the API server restarts")
	for name, c := range map[string]struct {
		args     []string
		terminal bool
		in       string
		later    []any
		code     failure.Code
		want     []string
		requests []string
	}{
		"a dry run only prints the plan": {
			args: []string{"--dry-run"}, want: []string{"Restart of prod/main: all members.", "Nothing was changed"}, requests: []string{dryAsk},
		},
		"without a terminal and --yes nothing happens": {
			code: failure.CodeUsage, want: []string{"the input is no terminal", "add --yes"}, requests: []string{dryAsk},
		},
		"no at the question": {
			terminal: true, in: "n\n", code: failure.CodeFailed, want: []string{"Carry it out? [y/N] ", "not confirmed; nothing was changed"}, requests: []string{dryAsk},
		},
		"nothing at the question": {
			terminal: true, in: "", code: failure.CodeFailed, want: []string{"not confirmed; nothing was changed"}, requests: []string{dryAsk},
		},
		"yes at the question": {
			terminal: true, in: "Y\n", later: []any{withOperation(running), unavailable, withOperation(done)},
			want: []string{"Restart of prod/main is done: members that are done: 1. It gave 2.0Mi back."}, requests: []string{dryAsk, ask},
		},
		"--yes": {args: []string{"--yes"}, later: []any{withOperation(done)}, want: []string{"is done"}, requests: []string{dryAsk, ask}},
		"no wait": {
			args: []string{"--yes", "--wait=false"}, want: []string{"was requested. Follow it: kubectl etcd status main -n prod -w"}, requests: []string{dryAsk, ask},
		},
		"it fails": {
			args: []string{"-y"}, later: []any{withOperation(failed)}, code: failure.CodeFailed,
			want: []string{"the operation failed: main-f9x4 did not start"}, requests: []string{dryAsk, ask},
		},
		"another operation is there": {
			args: []string{"-y"}, later: []any{withOperation(other)}, code: failure.CodeFailed,
			want: []string{"another operation than o7"}, requests: []string{dryAsk, ask},
		},
		"the time limit passes": {
			args: []string{"-y", "--timeout=2s"}, later: []any{withOperation(running)}, code: failure.CodeTimedOut,
			want: []string{"not done within 2s: main-f9x4 waits for main-f9x4; the change continues; follow it: kubectl etcd status main -n prod -w"}, requests: []string{dryAsk, ask},
		},
		"the cluster was recreated": {
			args: []string{"-y"}, later: []any{func() any { c := withOperation(running); c.UID = "other"; return c }()}, code: failure.CodeFailed,
			want: []string{"EtcdCluster prod/main was recreated (UID changed from 0b6c to other)"}, requests: []string{dryAsk, ask},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.On(http.MethodGet, clusterPath, sequence(append([]any{plugintest.Healthy().Cluster}, c.later...)...))
			server.On(http.MethodPost, clusterPath+"/restart", func(_ *http.Request, body []byte) any {
				if !strings.Contains(string(body), `"uid":"0b6c"`) {
					t.Errorf("the request is for any cluster of this name: %s", body)
				}
				return &v1beta2.EtcdClusterOperation{Status: v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: "o7"}}
			})
			p := newTerminal(t, server, c.terminal)
			p.In = strings.NewReader(c.in)
			p.expect(p.run(append([]string{"restart", "main"}, c.args...)...), c.code, c.want...)
			expectRequests(t, server, c.requests...)
		})
	}
}

func expectRequests(t *testing.T, server *plugintest.Server, want ...string) {
	t.Helper()
	var lines []string
	for _, r := range server.Requests() {
		lines = append(lines, r.Line)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("requests %q, want %q", lines, want)
	}
}

// TestTypedConfirmation: what may lose data needs the name of the cluster.
func TestTypedConfirmation(t *testing.T) {
	for in, code := range map[string]failure.Code{"y\n": failure.CodeFailed, "yes\n": failure.CodeFailed, "MAIN\n": failure.CodeFailed, "main\n": failure.CodeDone} {
		t.Run(strings.TrimSpace(in), func(t *testing.T) {
			lost := plugintest.QuorumLost().Cluster
			recovered := plugintest.Healthy().Cluster
			recovered.Status.Recovery = &v1beta2.RecoveryStatus{ID: "r2", Phase: v1beta2.RecoveryPhaseSucceeded, Source: v1beta2.RecoverySource{Member: "main-a7k2"}, ClusterID: "77"}
			recovering := plugintest.Restoring().Cluster
			recovering.Status.Recovery.ID = "r2"
			server := plugintest.New(t)
			server.On(http.MethodGet, clusterPath, sequence(lost, recovering, recovered))
			server.On(http.MethodPost, clusterPath+"/recover", func(*http.Request, []byte) any {
				return &v1beta2.EtcdClusterRecovery{Status: v1beta2.RecoveryStatus{
					ID: "r2", Source: v1beta2.RecoverySource{Member: "main-a7k2", RaftIndex: 90210}, ExpectedLoss: "none of what main-a7k2 has",
					Survivors: []v1beta2.RecoverySurvivor{{Name: "main-a7k2", RaftIndex: 90210, DBSize: 5 << 20}}, OldMembers: []string{"main-f9x4"},
				}}
			})
			p := newTerminal(t, server, true)
			p.In = strings.NewReader(in)
			got := p.run("recover", "main")
			p.expect(got, code, "Recovery of prod/main from member main-a7k2, which has committed up to entry 90210.",
				"survivor main-a7k2: entry 90210, database 5.0Mi", "estimated data loss: none of what", "Type the name of the cluster")
			if code == failure.CodeDone {
				p.expect(got, code, "prod/main was recovered from member main-a7k2. Its cluster ID is now 77.")
			}
		})
	}
}

func TestReplaceNeedsMembers(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	server.On(http.MethodPost, clusterPath+"/replace", func(_ *http.Request, body []byte) any {
		request := &v1beta2.EtcdClusterOperation{}
		if err := json.Unmarshal(body, request); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return &v1beta2.EtcdClusterOperation{Status: v1beta2.ClusterOperation{Message: "member " + strings.Join(request.Spec.Members, " ") + " on node node-3, whose PVC is deleted"}}
	})
	p := newTerminal(t, server, false)
	p.expect(p.run("replace", "main"), failure.CodeUsage, "1 arguments were given; type: kubectl etcd replace NAME MEMBER...")
	p = newTerminal(t, server, false)
	p.expect(p.run("replace", "main", "main-q3m8", "--dry-run"), failure.CodeDone,
		"Replacement in prod/main: main-q3m8.", "member main-q3m8 on node node-3, whose PVC is deleted", "Nothing was changed")
}

func TestMoveLeader(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	server.On(http.MethodPost, clusterPath+"/moveleader", func(_ *http.Request, body []byte) any {
		move := &v1beta2.EtcdClusterLeaderMove{}
		if err := json.Unmarshal(body, move); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		move.Status = v1beta2.LeaderMoveStatus{From: "main-a7k2", Leader: move.Spec.Target, Term: 8}
		return move
	})
	p := newTerminal(t, server, false)
	p.expect(p.run("move-leader", "main", "--to", "main-f9x4", "-y"), failure.CodeDone,
		"Leader of prod/main: from main-a7k2 to main-f9x4.", "main-f9x4 leads prod/main in term 8.")
}

func TestBackup(t *testing.T) {
	backup := func(status v1beta2.BackupStatus) any {
		return &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "main-1", Namespace: "prod"}, Status: status}
	}
	for name, c := range map[string]struct {
		states []any
		code   failure.Code
		want   string
	}{
		"succeeds": {
			states: []any{
				backup(v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseRunning, Progress: &v1beta2.TransferProgress{Bytes: 1, TotalBytes: 2}}),
				backup(v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded, EtcdRevision: 12, SnapshotSize: 20 << 20, StoredSize: 3 << 20, URI: "s3://b/k", SHA256: "a1b2", Verified: true, VerifiedBy: "Hash"}),
			},
			want: "Backup main-1 of prod/main is done: revision 12, 20Mi stored as 3.0Mi at s3://b/k, SHA-256 a1b2, verified by Hash.",
		},
		"fails": {
			states: []any{backup(v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseFailed, Reason: "access denied"})},
			code:   failure.CodeFailed, want: "the backup failed: access denied; see kubectl -n prod describe etcdbackup main-1",
		},
		"cannot be read": {
			states: []any{plugintest.Forbidden("etcdbackups", "main-1")}, code: failure.CodeForbidden, want: "the right to get etcdbackups in namespace prod is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			server.On(http.MethodPost, clusterPath+"/backup", func(*http.Request, []byte) any {
				return &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "main-1"}, Spec: v1beta2.BackupSpec{
					BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k"}}}}
			})
			server.On(http.MethodGet, plugintest.Path("etcdbackups", "main-1"), sequence(c.states...))
			p := newTerminal(t, server, false)
			p.expect(p.run("backup", "main", "--yes"), c.code, "Backup of prod/main to S3 b/k.", "EtcdBackup main-1 was created.", c.want)
		})
	}
}

// TestBackupOfANewCluster: the command waits until the cluster serves before it asks for the plan.
func TestBackupOfANewCluster(t *testing.T) {
	started := plugintest.Healthy().Cluster
	created, creating, recreated := started.DeepCopy(), started.DeepCopy(), started.DeepCopy()
	created.Status = v1beta2.ClusterStatus{}
	creating.Status = v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseCreating}
	recreated.UID = "another"
	for name, c := range map[string]struct {
		clusters []any
		args     []string
		code     failure.Code
		want     []string
		requests int
	}{
		"serves in the end": {
			clusters: []any{created, creating, started}, requests: 2,
			want: []string{"prod/main has started.", "Backup of prod/main to S3 b/k.", "Backup main-1 of prod/main is done"},
		},
		"not in time":            {clusters: []any{creating}, args: []string{"--timeout=1ms"}, code: failure.CodeTimedOut},
		"recreated meanwhile":    {clusters: []any{creating, recreated}, code: failure.CodeFailed, want: []string{"prod/main was recreated"}},
		"does not wait if asked": {clusters: []any{creating}, args: []string{"--wait=false"}, requests: 2, want: []string{"EtcdBackup main-1 was created."}},
		"plan of a dry run":      {clusters: []any{creating}, args: []string{"--dry-run"}, requests: 1, want: []string{"Nothing was changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.On(http.MethodGet, clusterPath, sequence(c.clusters...))
			requests := 0
			server.On(http.MethodPost, clusterPath+"/backup", func(*http.Request, []byte) any {
				requests++
				return &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "main-1"}, Spec: v1beta2.BackupSpec{
					BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k"}}}}
			})
			server.On(http.MethodGet, plugintest.Path("etcdbackups", "main-1"), sequence(&v1beta2.EtcdBackup{
				ObjectMeta: metav1.ObjectMeta{Name: "main-1", Namespace: "prod"}, Status: v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded}}))
			p := newTerminal(t, server, false)
			p.expect(p.run(append([]string{"backup", "main", "--yes"}, c.args...)...), c.code, c.want...)
			if requests != c.requests {
				t.Errorf("%d requests for a backup, want %d", requests, c.requests)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	restore := func(status v1beta2.RestoreStatus) any {
		return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "main-r", Namespace: "prod"}, Status: status}
	}
	for name, c := range map[string]struct {
		args   []string
		states []any
		code   failure.Code
		body   string
		want   string
	}{
		"the newest backup": {
			states: []any{restore(v1beta2.RestoreStatus{}), restore(v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseRestoring}),
				restore(v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseSucceeded, Revision: 81233, PreRestoreBackup: &v1beta2.PreRestoreBackup{Backup: "before"}})},
			want: "Restore main-r is done: prod/main serves the data of revision 81233. EtcdBackup before has the data from before.",
		},
		"no quorum confirmed the pre-restore backup": {
			states: []any{restore(v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseSucceeded, Revision: 81233, PreRestoreBackup: &v1beta2.PreRestoreBackup{Backup: "before", Unconfirmed: true}})},
			want:   "has the data from before. No quorum confirmed it, so the PVCs of the old members are kept",
		},
		"the pre-restore backup is of members whose data differed": {
			states: []any{restore(v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseSucceeded, Revision: 81233, PreRestoreBackup: &v1beta2.PreRestoreBackup{Backup: "before", DataDiffers: true}})},
			want:   "The data of the old members differed (alarm CORRUPT), and it has that of one of them, so their PVCs are kept.",
		},
		"a named one": {
			args: []string{"--backup", "nightly", "--revision", "7"}, body: `"backup":{"name":"nightly","revision":7}`,
			states: []any{restore(v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed, Reason: "the hash differs"})},
			code:   failure.CodeFailed, want: "the restore failed: the hash differs; see kubectl -n prod describe etcdrestore main-r",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			server.On(http.MethodPost, clusterPath+"/restore", func(_ *http.Request, body []byte) any {
				if !strings.Contains(string(body), c.body) {
					t.Errorf("%s is not in %s", c.body, body)
				}
				return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "main-r"}, Spec: v1beta2.RestoreSpec{
					Backup: &v1beta2.BackupReference{Name: "main-scheduled", Revision: ptr.To[int64](81233)}}}
			})
			server.On(http.MethodGet, plugintest.Path("etcdrestores", "main-r"), sequence(c.states...))
			p := newTerminal(t, server, false)
			p.expect(p.run(append([]string{"restore", "main", "-y"}, c.args...)...), c.code,
				"Restore of prod/main in place from EtcdBackup main-scheduled, revision 81233.", "The last backup is of 2026-03-04T03:00:00Z.", c.want)
		})
	}
	t.Run("another backup was stored while the plan was read", func(t *testing.T) {
		server := plugintest.New(t)
		server.PutState(plugintest.Healthy())
		revision := int64(81233)
		server.On(http.MethodPost, clusterPath+"/restore", func(r *http.Request, _ []byte) any {
			if r.URL.Query().Get("dryRun") == "" {
				t.Error("it restores another backup than the one that the plan showed")
			}
			revision++
			return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "main-r"}, Spec: v1beta2.RestoreSpec{
				Backup: &v1beta2.BackupReference{Name: "main-scheduled", Revision: ptr.To(revision)}}}
		})
		p := newTerminal(t, server, false)
		p.expect(p.run("restore", "main", "-y"), failure.CodeFailed, "the plan was from EtcdBackup main-scheduled, revision 81234, and the last backup is EtcdBackup main-scheduled, revision 81235 by now")
	})
	t.Run("a revision without a backup", func(t *testing.T) {
		p := newTerminal(t, plugintest.New(t), false)
		p.expect(p.run("restore", "main", "--revision=3"), failure.CodeUsage, "--revision needs --backup")
	})
}

func TestUpgrade(t *testing.T) {
	upgraded := plugintest.Healthy()
	upgraded.Cluster.Spec.Version, upgraded.Cluster.Status.CurrentVersion = "3.6.18", "3.6.18"
	stalled := plugintest.Upgrading()
	stalled.Condition(v1beta2.ClusterConditionStalled, corev1.ConditionTrue, "PodFailed", "the image cannot be pulled")
	unseen := plugintest.Upgrading()
	unseen.Cluster.Generation = 4
	for name, c := range map[string]struct {
		version string
		later   []any
		patch   any
		code    failure.Code
		want    []string
	}{
		"goes through": {
			version: "v3.6.18", later: []any{unseen.Cluster, plugintest.Upgrading().Cluster, upgraded.Cluster},
			want: []string{"Upgrade of prod/main: from etcd 3.6.16 to 3.6.18. One member restarts at a time", "Every member of prod/main runs etcd 3.6.18."},
		},
		"a minor version has no way back": {version: "3.7.1", patch: apierrors.NewBadRequest("not from here"), code: failure.CodeFailed, want: []string{"not from here"}},
		"is there already":                {version: "3.6.16", want: []string{"Every member of prod/main runs etcd 3.6.16 already."}},
		"stalls": {
			version: "3.6.18", later: []any{stalled.Cluster}, code: failure.CodeNotMet,
			want: []string{"prod/main is stalled (PodFailed): the image cannot be pulled", "kubectl etcd why main -n prod"},
		},
		"another request wins": {version: "3.6.18", later: []any{plugintest.Healthy().Cluster}, code: failure.CodeFailed, want: []string{"was changed to 3.6.16 by another request"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.On(http.MethodGet, clusterPath, sequence(append([]any{plugintest.Healthy().Cluster}, c.later...)...))
			server.On(http.MethodPatch, clusterPath, func(*http.Request, []byte) any {
				if c.patch != nil {
					return c.patch
				}
				return upgraded.Cluster
			})
			p := newTerminal(t, server, false)
			p.expect(p.run("upgrade", "main", c.version, "--yes"), c.code, c.want...)
		})
	}
}

func TestHibernateAndWake(t *testing.T) {
	asleep := plugintest.Hibernated().Cluster
	awake := plugintest.Healthy().Cluster
	for name, c := range map[string]struct {
		args   []string
		states []any
		pvcs   int
		code   failure.Code
		size   int32
		want   []string
	}{
		"hibernate": {args: []string{"hibernate", "main"}, states: []any{awake, asleep}, want: []string{"size changes from 3 to 0", "The PVCs stay.", "prod/main is hibernated. Its PVCs stay."}},
		"asleep":    {args: []string{"hibernate", "main"}, states: []any{asleep}, size: -1, want: []string{"prod/main is hibernated already."}},
		"wake":      {args: []string{"wake", "main"}, states: []any{asleep, awake}, pvcs: 3, size: 3, want: []string{"size changes from 0 to 3", "prod/main serves with 3 members."}},
		"a size":    {args: []string{"wake", "main", "--size=3"}, states: []any{asleep, awake}, size: 3, want: []string{"prod/main serves with 3 members."}},
		"no PVC":    {args: []string{"wake", "main"}, states: []any{asleep}, code: failure.CodeUsage, size: -1, want: []string{"name it with --size"}},
		"awake":     {args: []string{"wake", "main"}, states: []any{awake}, size: -1, want: []string{"prod/main is not hibernated: its size is 3."}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.On(http.MethodGet, clusterPath, sequence(c.states...))
			members := &v1beta2.EtcdClusterMembers{}
			for range c.pvcs {
				members.Members = append(members.Members, v1beta2.ListedMember{Claim: &v1beta2.MemberPVC{}})
			}
			server.Put(clusterPath+"/members", members)
			size := int32(-1)
			server.On(http.MethodPut, clusterPath+"/scale", func(_ *http.Request, body []byte) any {
				scale := &autoscalingv1.Scale{}
				if err := json.Unmarshal(body, scale); err != nil || scale.UID != "0b6c" {
					t.Errorf("%v: unexpected %s", err, body)
				}
				size = scale.Spec.Replicas
				return scale
			})
			p := newTerminal(t, server, false)
			p.expect(p.run(append(c.args, "-y")...), c.code, c.want...)
			if sent := server.Requests(); size != c.size || (size >= 0) != (len(sent) == 2) {
				t.Errorf("the size became %d, want %d", size, c.size)
			}
		})
	}
}
