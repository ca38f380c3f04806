// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// joining is an API server with a controller whose members join, and are alone, at once.
type joining struct {
	*plugintest.Server

	t       *testing.T
	cluster *v1beta2.EtcdCluster
	created int
	// blocked is what the controller waits for, instead of the joining of members.
	blocked *v1beta2.BlockedBy
}

func newJoining(t *testing.T) *joining {
	t.Helper()
	j := &joining{Server: plugintest.New(t), t: t}
	j.On(http.MethodPost, migrationNamespace+"etcdclusters", func(r *http.Request, body []byte) any {
		c := &v1beta2.EtcdCluster{}
		if err := json.Unmarshal(body, c); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if c.Spec.Version == "" {
			c.Spec.Version = v1beta2.DefaultVersion
		}
		c.UID, c.Generation = "uid", 1
		if r.URL.Query().Get("dryRun") == "" {
			j.cluster = c
			j.created++
		}
		return c
	})
	j.On(http.MethodGet, migrationNamespace+"etcdclusters/new", func(*http.Request, []byte) any {
		if j.cluster == nil {
			return apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), "new")
		}
		return j.observed()
	})
	j.On(http.MethodPatch, migrationNamespace+"etcdclusters/new", func(r *http.Request, body []byte) any {
		if j.cluster == nil {
			return apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), "new")
		}
		c := j.cluster.DeepCopy()
		if err := json.Unmarshal(body, c); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if r.URL.Query().Get("dryRun") == "" {
			c.Generation++
			j.cluster = c
		}
		return c
	})
	return j
}

// observed is the cluster with the status of the controller.
func (j *joining) observed() *v1beta2.EtcdCluster {
	c := j.cluster.DeepCopy()
	existing := c.Existing()
	c.Status = v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, ObservedGeneration: c.Generation, BlockedBy: j.blocked}
	if existing != nil && existing.OldMembers != v1beta2.OldMembersRemove {
		for _, name := range []string{"etcd-0", "etcd-1"} {
			c.Status.MemberStatuses = append(c.Status.MemberStatuses, v1beta2.MemberStatus{Name: name, Role: v1beta2.MemberRoleFollower, Unmanaged: true})
		}
	}
	ready := corev1.ConditionFalse
	if j.blocked == nil {
		ready = corev1.ConditionTrue
		for range ptr.Deref(c.Spec.Replicas, 0) {
			c.Status.MemberStatuses = append(c.Status.MemberStatuses, v1beta2.MemberStatus{Name: "new-x", Role: v1beta2.MemberRoleFollower})
		}
	}
	c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionReady, Status: ready, ObservedGeneration: c.Generation}}
	return c
}

const (
	joinLine   = "migrate join new --endpoints=http://etcd-0.etcd:2379,http://etcd-1.etcd:2379 --version=3.5.21"
	finishLine = "migrate finish new"
)

// TestMigrateJoinScreens: what the commands print while nothing fails.
func TestMigrateJoinScreens(t *testing.T) {
	for name, lines := range map[string][]string{
		"migrate-join-plan":   {joinLine},
		"migrate-join-done":   {joinLine + " --yes"},
		"migrate-finish-plan": {joinLine + " --yes", finishLine},
		"migrate-finish-done": {joinLine + " --yes", finishLine + " --yes"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoining(t)
			var p *terminal
			for _, line := range lines {
				p = newTerminal(t, j.Server, false)
				p.expect(p.run(strings.Fields(line)...), failure.CodeDone)
			}
			golden(t, name, p.out.String()+p.err.String())
			if name == "migrate-finish-done" {
				p = newTerminal(t, j.Server, false)
				p.expect(p.run(strings.Fields(finishLine)...), failure.CodeDone, "No old member of prod/new is left")
			}
			if removed := j.cluster != nil && j.cluster.Existing().OldMembers == v1beta2.OldMembersRemove; removed != (name == "migrate-finish-done") {
				t.Errorf("the removal of old members is requested: %t", removed)
			}
			if (j.created == 0) != (name == "migrate-join-plan") {
				t.Errorf("clusters that were created: %d", j.created)
			}
		})
	}
}

// TestMigrateJoinObject: the EtcdCluster that the command creates.
func TestMigrateJoinObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	text := `apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: old, labels: {team: data}}
spec: {size: 5, version: 3.5.20, TLS: {static: {operatorSecret: o, member: {serverSecret: s, peerSecret: p}}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j := newJoining(t)
	p := newTerminal(t, j.Server, false)
	p.expect(p.run("migrate", "join", "new", "--endpoints=https://etcd:2379", "--tls-secret=client", "-f", file, "--yes"), failure.CodeDone, "members 5, etcd 3.5.20", "5 members of prod/new vote")
	c := j.cluster
	if c.Name != "new" || c.Labels["team"] != "data" || *c.Spec.Replicas != 5 || c.Spec.TLS.Static.OperatorSecret != "o" {
		t.Errorf("unexpected cluster %+v", c)
	}
	if e := c.Existing(); e.ClientEndpoints[0] != "https://etcd:2379" || e.TLSSecret != "client" || e.OldMembers != v1beta2.OldMembersKeep {
		t.Errorf("unexpected source %+v", e)
	}
	// The command continues, and creates nothing a second time.
	p = newTerminal(t, j.Server, false)
	p.expect(p.run("migrate", "join", "new", "--endpoints=https://etcd:2379", "--tls-secret=client", "-f", file, "--yes"), failure.CodeDone, "It exists: the migration continues.")
	if j.created != 1 {
		t.Errorf("created %d times", j.created)
	}
}

// TestMigrateJoinRejects: what keeps a migration by joining from its start, or ends it.
func TestMigrateJoinRejects(t *testing.T) {
	plain := &v1beta2.EtcdCluster{}
	plain.Name, plain.Namespace, plain.UID = "new", "prod", "uid"
	other := plain.DeepCopy()
	other.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://other:2379"}}}
	joined := plain.DeepCopy()
	joined.Spec.Replicas = ptr.To[int32](3)
	joined.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://etcd-0.etcd:2379", "http://etcd-1.etcd:2379"}}}
	unsuitable := &v1beta2.BlockedBy{Reason: "ExistingEtcdUnsuitable", Message: "member x is a learner", Unblock: "Promote it."}
	for name, c := range map[string]struct {
		line     string
		cluster  *v1beta2.EtcdCluster
		blocked  *v1beta2.BlockedBy
		terminal bool
		in       string
		code     failure.Code
		want     []string
	}{
		"no endpoints":                      {line: "migrate join new", code: failure.CodeUsage, want: []string{"--endpoints is missing"}},
		"no manifest":                       {line: joinLine + " -f /none", code: failure.CodeUsage, want: []string{"--filename: open /none"}},
		"a cluster with data of its own":    {line: joinLine + " -y", cluster: plain, code: failure.CodeNotMet, want: []string{"EtcdCluster prod/new has begun with data of its own"}},
		"a cluster that joins another etcd": {line: joinLine + " -y", cluster: other, code: failure.CodeNotMet, want: []string{"EtcdCluster prod/new joins http://other:2379"}},
		"an etcd that is unsuitable": {line: joinLine + " -y", blocked: unsuitable, code: failure.CodeNotMet,
			want: []string{"members of the new cluster cannot join: member x is a learner", "Promote it.", "The running etcd is unchanged", "kubectl -n prod delete etcdcluster/new"}},
		"another name at the question": {line: joinLine, terminal: true, in: "yes\n", code: failure.CodeFailed, want: []string{"not confirmed"}},
		"the end of what has not begun": {line: finishLine + " -y", cluster: plain, code: failure.CodeNotMet,
			want: []string{"prod/new has joined no running etcd"}},
		"the end while members join": {line: finishLine + " -y", cluster: joined, blocked: &v1beta2.BlockedBy{Reason: "WaitingForMember", Message: "member a joins"}, code: failure.CodeNotMet,
			want: []string{"not all members of prod/new vote yet: member a joins"}},
		"another name at the last question": {line: finishLine, cluster: joined, terminal: true, in: "y\n", code: failure.CodeFailed, want: []string{"Type the name of the cluster", "not confirmed"}},
		"the name at the last question":     {line: finishLine, cluster: joined, terminal: true, in: "new\n", code: failure.CodeDone, want: []string{"The old members are removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoining(t)
			j.cluster, j.blocked = c.cluster, c.blocked
			p := newTerminal(t, j.Server, c.terminal)
			p.In = strings.NewReader(c.in)
			p.expect(p.run(strings.Fields(c.line)...), c.code, c.want...)
		})
	}
}
