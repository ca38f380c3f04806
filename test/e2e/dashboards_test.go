// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

var updateRecording = flag.Bool("update", false, "TestDashboards writes the series that it saw to test/prometheus/testdata/run.txt")

// dashboardsTimeout is for a machine that is busy with three other tests.
const dashboardsTimeout = 5 * time.Minute

// recorded says what happened to a cluster when. test/prometheus reads it.
type recorded struct {
	Namespace string            `json:"namespace"`
	Cluster   string            `json:"cluster"`
	From      string            `json:"from"`
	To        string            `json:"to"`
	Whole     window            `json:"whole"`
	Windows   map[string]window `json:"windows"`
}

type window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// watched is a cluster that a Prometheus watches.
type watched struct {
	*cluster
	server *harness.Prometheus
	run    recorded
}

// watch starts a Prometheus that scrapes what the shipped PodMonitors select, as the Prometheus
// Operator understands them, and evaluates the shipped rules.
func (c *cluster) watch() *watched {
	c.Helper()
	c.must(env.BuildPrometheus(c.ctx()), "build Prometheus")
	remove, err := env.InstallMetricsAccount(c.ctx())
	c.must(err, "install the account that reads metrics")
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := remove(ctx); err != nil {
			c.Errorf("remove the account that reads metrics: %v", err)
		}
	})
	server, err := env.StartPrometheus(c.ctx(), c.namespace)
	c.must(err, "start Prometheus")
	c.Cleanup(func() {
		if err := server.Stop(); err != nil {
			c.Errorf("stop Prometheus: %v", err)
		}
	})
	return &watched{cluster: c, server: server, run: recorded{
		Namespace: c.namespace, Cluster: c.name, From: previousVersion, To: etcdVersion, Windows: map[string]window{},
	}}
}

// until asks Prometheus until something is true.
func (w *watched) until(what string, done func(context.Context) (bool, error)) {
	w.Helper()
	ctx := w.within(time.Minute)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		isDone, err := done(ctx)
		if isDone && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			w.Fatalf("Prometheus never showed %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// shows waits until an expression has data, or none. $of stands for the labels of the cluster.
func (w *watched) shows(expr string, isData bool) {
	w.Helper()
	expr = strings.ReplaceAll(expr, "$of", fmt.Sprintf("namespace=%q,name=%q", w.namespace, w.name))
	w.until(fmt.Sprintf("%s (data: %v)", expr, isData), func(ctx context.Context) (bool, error) {
		list, err := w.server.Query(ctx, expr)
		return len(list) > 0 == isData, err
	})
}

// awaitTargets waits until Prometheus scrapes exactly the pods that the PodMonitors select.
func (w *watched) awaitTargets() {
	w.Helper()
	w.until("the pods that the PodMonitors select", func(ctx context.Context) (bool, error) {
		selected, err := env.MonitoredPods(ctx, w.namespace)
		if err != nil {
			return false, err
		}
		targets, err := w.server.Targets(ctx)
		var scraped []string
		for _, target := range targets {
			if target.Health != "up" {
				return false, fmt.Errorf("target %v: %s", target.Labels, target.LastError)
			}
			job := strings.TrimPrefix(target.Labels["job"], harness.SystemNamespace+"/")
			scraped = append(scraped, job+" "+target.Labels["pod"])
		}
		slices.Sort(scraped)
		if err == nil && !slices.Equal(scraped, selected) {
			err = fmt.Errorf("the targets are %q, want %q", scraped, selected)
		}
		return err == nil, err
	})
}

// during keeps when an event began and ended. The API server probes members meanwhile.
func (w *watched) during(event string, do func()) {
	w.Helper()
	from := time.Now()
	w.health()
	do()
	w.health()
	w.run.Windows[event] = window{from, time.Now()}
	w.Logf("%s took %v", event, time.Since(from).Round(100*time.Millisecond))
}

// TestDashboards: a real Prometheus watches a cluster that is upgraded and backed up, and that loses
// its quorum and recovers. Every query of every dashboard then has the data that test/prometheus
// expects, and the alert about the quorum fires and ends.
func TestDashboards(t *testing.T) {
	t.Parallel()
	env.RequireLocal(t, harness.PodNetwork)
	s := startFor(t, dashboardsTimeout)
	s.volume()
	c := s.cluster("seen")
	c.secure("seen-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("seen", 3, previousVersion, withAutoTLS, withVolumes))
	w := c.watch()
	c.settle(3)
	w.awaitTargets()
	w.health()
	w.shows("etcd_operator_apiserver_probe_member_responses_total", true)
	data := c.fill()
	writer := c.write()
	w.run.Whole.From = time.Now()

	w.during("upgrade", func() {
		s.kubectl(patchVersion("seen", etcdVersion)...)
		c.await(s.ctx(), "the new version", func(object *clusterObject) bool {
			return isSettled(object, 3) && object.Status.CurrentVersion == etcdVersion && object.Status.TargetVersion == ""
		})
		w.shows(`etcd_operator_cluster_info{$of,version="`+etcdVersion+`"}`, true)
		// The graph of restarts looks at members every 15 s, and an upgrade can be over before. The
		// offset is longer than a step of the evaluation of the window.
		w.shows("changes(max by (pod) (process_start_time_seconds{$of})[1h:15s] offset 2s)", true)
	})
	w.during("backup", func() {
		// The pod is created again with the same name and another address. Graphs show one line for both.
		follower := c.follower().Pod
		s.kubectl("delete", "pod", follower.Name)
		s.must(c.members.AwaitVoters(s.ctx(), 3, follower.UID), "a member restarts")
		s.apply(backupManifest("once", "  etcdCluster: {name: seen}"+toVolume))
		s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
		// For longer than the step of the recording, which would miss it otherwise.
		w.shows(`count_over_time(etcd_operator_cluster_last_backup_timestamp_seconds{$of}[20s]) >= 5`, true)
		w.shows("increase(etcd_operator_backup_attempts_total[1m])", true)
		// A member measures twice a minute.
		w.shows("rate(etcd_network_peer_round_trip_time_seconds_count{$of}[10s]) > 0", true)
	})
	c.stopped(writer)
	w.during("quorumLoss", w.loseQuorum)
	c.holds(data)
	w.awaitTargets()
	w.run.Whole.To = time.Now()

	file := ""
	if *updateRecording {
		file = filepath.Join(env.Root, "test/prometheus/testdata/run.txt")
	}
	report, err := w.server.CheckDashboards(s.ctx(), w.run, file)
	t.Log(report)
	s.must(err, "evaluate the dashboards")
}

// loseQuorum destroys two of three members, and recovers the cluster from the last one.
func (w *watched) loseQuorum() {
	w.Helper()
	const firing = `ALERTS{alertname="EtcdClusterQuorumLost",alertstate="firing",$of}`
	w.shows(firing, false)
	survivor := w.leader().Pod
	w.destroy(survivor)
	w.awaitLoss(survivor.Name)
	w.shows(firing, true)
	w.shows("count_over_time("+firing+"[1m]) > 1", true)
	_, err := w.recoverNow()
	w.must(err, "ask for the recovery")
	w.recovered(3)
	w.shows(firing, false)
	w.shows(`ALERTS{alertname="EtcdClusterRecovered",alertstate="firing",$of}`, true)
}
