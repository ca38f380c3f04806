// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// prometheus reads the metrics of the installed programs as a Prometheus does that has an
// account of its own.
type prometheus struct {
	*scenario
	token string
	tls   *tls.Config
	pods  map[string]*harness.View[*corev1.Pod]
}

// prometheus makes the account, which may get /metrics and nothing else.
func (s *scenario) prometheus() *prometheus {
	s.Helper()
	role := s.namespace + "-scrape"
	s.kubectl("create", "serviceaccount", "prometheus")
	s.kubectl("create", "clusterrole", role, "--verb=get", "--non-resource-url=/metrics")
	s.Cleanup(func() {
		for _, kind := range []string{"clusterrolebinding", "clusterrole"} {
			_, _ = env.Kubectl(s.Context(), harness.Command{Args: []string{"delete", kind, role, "--ignore-not-found", "--wait=false"}})
		}
	})
	p := &prometheus{scenario: s, token: strings.TrimSpace(s.kubectl("create", "token", "prometheus")), pods: map[string]*harness.View[*corev1.Pod]{}}
	var err error
	p.tls, err = env.ScrapeTLS(s.ctx())
	s.must(err, "read the name of the API server")
	for _, program := range []string{harness.Controller, harness.APIServer} {
		p.pods[program], err = env.ProgramPods(s.ctx(), program)
		s.must(err, "find the pods of %s", program)
		s.Cleanup(p.pods[program].Close)
	}
	apiserver := p.pods[harness.APIServer].List()[0]
	if _, err := env.Scrape(s.ctx(), apiserver, p.token, p.tls); !errors.Is(err, harness.ErrScrapeForbidden) {
		s.Errorf("an account without the right to read metrics is not forbidden: %v", err)
	}
	if _, err := env.Scrape(s.ctx(), apiserver, "", p.tls); !errors.Is(err, harness.ErrScrapeForbidden) {
		s.Errorf("a request without a token is not forbidden: %v", err)
	}
	s.kubectl("create", "clusterrolebinding", role, "--clusterrole="+role, "--serviceaccount="+s.namespace+":prometheus")
	return p
}

// scrape returns all samples of a program.
func (p *prometheus) scrape(program string) (harness.Samples, error) {
	all := harness.Samples{}
	for _, pod := range p.pods[program].List() {
		samples, err := env.Scrape(p.ctx(), pod, p.token, p.tls)
		if err != nil {
			return nil, err
		}
		for line, value := range samples {
			all[line] += value
		}
	}
	return all, nil
}

// await scrapes a program until its samples are as they should be.
func (p *prometheus) await(program, what string, so func(harness.Samples) bool) harness.Samples {
	p.Helper()
	const every = 250 * time.Millisecond
	ctx := p.within(time.Minute)
	var last error
	for {
		samples, err := p.scrape(program)
		if err == nil && so(samples) {
			return samples
		}
		last = err
		select {
		case <-ctx.Done():
			var about []string
			for line := range samples {
				if strings.Contains(line, p.namespace) {
					about = append(about, line)
				}
			}
			slices.Sort(about)
			p.Fatalf("the metrics of %s never said that %s (%v):\n%s", program, what, last, strings.Join(about, "\n"))
		case <-time.After(every):
		}
	}
}

// TestMetrics: the metrics of the installed programs follow what happens to a cluster, and no
// series of it remains after its deletion.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.prometheus()
	c := s.create("seen", 3, etcdVersion)
	data := c.fill()
	mine := []string{`namespace="` + s.namespace + `"`, `name="seen"`}
	is := func(metric string, want float64, labels ...string) func(harness.Samples) bool {
		return func(m harness.Samples) bool {
			value, n := m.Value("etcd_operator_cluster_"+metric, slices.Concat(mine, labels)...)
			return n == 1 && value == want
		}
	}
	all := func(conditions ...func(harness.Samples) bool) func(harness.Samples) bool {
		return func(m harness.Samples) bool {
			return !slices.ContainsFunc(conditions, func(so func(harness.Samples) bool) bool { return !so(m) })
		}
	}
	of := func(size int) func(harness.Samples) bool {
		n := float64(size)
		return all(is("size", n), is("members", n, `state="ready"`), is("members", 0, `state="unready"`), is("tolerance", float64((size-1)/2)),
			is("condition", 1, `condition="Available"`, `status="True"`), is("info", 1, `phase="Running"`, `version="`+etcdVersion+`"`))
	}
	before := p.await(harness.Controller, "three members serve", of(3))
	if _, n := before.Value("etcd_operator_cluster_last_backup_timestamp_seconds", mine...); n != 0 {
		t.Error("a cluster that was never backed up has a last backup")
	}
	if leads, _ := before.Value("etcd_operator_leader"); leads != 1 {
		t.Errorf("%v processes hold the lease", leads)
	}

	s.kubectl("delete", "pod", c.follower().Pod.Name, "--force", "--grace-period=0", "--wait=false")
	p.await(harness.Controller, "no member more may fail", is("tolerance", 0))
	p.await(harness.Controller, "three members serve again", of(3))

	leader, heir := c.leader(), c.follower()
	c.await(c.within(time.Minute), "the status to name the leader", func(object *v1beta2.EtcdCluster) bool { return object.Status.Leader == leader.Pod.Name })
	changes, _ := p.await(harness.Controller, "three members serve", of(3)).Value("etcd_operator_cluster_leader_changes_total", mine...)
	client, err := c.members.Client(leader.Pod)
	s.must(err, "reach the leader")
	_, err = client.MoveLeader(s.ctx(), heir.ID)
	s.must(err, "hand the leadership over")
	p.await(harness.Controller, "another member leads", func(m harness.Samples) bool {
		now, _ := m.Value("etcd_operator_cluster_leader_changes_total", mine...)
		return now > changes
	})

	s.kubectl("scale", "etcd", "seen", "--replicas=1")
	after := p.await(harness.Controller, "one member is left", of(1))
	c.holds(data)
	const reconciles = "etcd_operator_reconcile_duration_seconds_count"
	was, _ := before.Value(reconciles, `outcome="success"`)
	if now, _ := after.Value(reconciles, `outcome="success"`); now <= was {
		t.Errorf("%v reconciles before and %v after", was, now)
	}
	for _, queue := range []string{"workqueue_depth", "workqueue_queue_duration_seconds_count", "workqueue_work_duration_seconds_count"} {
		if _, n := after.Value(queue); n == 0 {
			t.Errorf("there is no %s", queue)
		}
	}

	requests := func(m harness.Samples) float64 {
		n, _ := m.Value("apiserver_request_total", `group="etcd.database.coreos.com"`, `resource="etcdclusters"`)
		return n
	}
	asked := requests(p.await(harness.APIServer, "requests are counted", func(m harness.Samples) bool { return requests(m) > 0 }))
	s.kubectl("delete", "etcd", "seen", "--wait=true")
	p.await(harness.APIServer, "more requests were made", func(m harness.Samples) bool { return requests(m) > asked })
	for program := range p.pods {
		p.await(program, "the cluster is deleted", func(m harness.Samples) bool { return m.Mention(s.namespace) == "" })
	}
}
