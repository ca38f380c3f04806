// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// standstill is less than the controller's time-out for the status of a member. If the
	// simulated members do not run for so long, they are unresponsive.
	standstill = 500 * time.Millisecond
	// queue is how long the threads of the controller, together, may have waited for a processor
	// within one tick. More of it delays responses so long that members seem unresponsive.
	queue = 250 * time.Millisecond
	// tick is how often standstills are looked for.
	tick = 50 * time.Millisecond
	// maxRests is how often a fleet at rest is watched, if the machine stands still each time.
	maxRests = 5
)

// rest watches a fleet without changes. The other tests may take the processor away from the
// simulated members, or from the controller until it loses its lease. What happens then says
// nothing, and the fleet is watched again.
func (s *simulated) rest() {
	s.Helper()
	d := time.Duration(fromEnvironment(s.T, fleetRestVariable, int(defaultRest.Seconds()))) * time.Second
	for range maxRests {
		s.sleep(calm)
		happened, disturbed := s.restOnce(d)
		if len(happened) > 0 && disturbed != "" {
			s.Logf("watched again: %s; %v", disturbed, happened)
			continue
		}
		for _, what := range happened {
			s.Error(what)
		}
		return
	}
	s.Errorf("the machine stood still %d times", maxRests)
}

// restOnce returns what happened, and what may have disturbed the fleet.
func (s *simulated) restOnce(d time.Duration) (happened []string, disturbed string) {
	s.Helper()
	before := s.asked()
	dials, statuses, lists := s.etcd.Dials.Load(), s.etcd.Statuses.Load(), s.etcd.Lists.Load()
	startProcessor, _ := s.used()
	changes := s.watchChanges()
	longest, queued := s.longestStandstill(d)
	processor, memory := s.used()
	requests := s.asked().since(before)
	dials, statuses, lists = s.etcd.Dials.Load()-dials, s.etcd.Statuses.Load()-statuses, s.etcd.Lists.Load()-lists
	s.Logf("at rest for %v: %d connections made, %d statuses, %d member lists; %.2f %% of a processor, %d MiB; requests: %v",
		d, dials, statuses, lists, 100*(processor-startProcessor)/d.Seconds(), memory, requests)
	say := func(format string, args ...any) { happened = append(happened, fmt.Sprintf(format, args...)) }
	if dials != 0 {
		say("%d connections were made at rest", dials)
	}
	// Rounds are cut at both ends.
	if lists < int64(s.clusters) || statuses < memberSize*(lists-16) || statuses > memberSize*(lists+16) {
		say("%d statuses of members and %d member lists of %d clusters of %d", statuses, lists, s.clusters, memberSize)
	}
	for what, n := range requests {
		if what.verb != "watch" && what.resource != "leases" {
			say("at rest there were %d requests to %s %s", n, what.verb, what.resource)
		}
	}
	if all := changes(); len(all) > 0 {
		say("at rest %d statuses changed, such as %s", len(all), all[0])
	}
	switch {
	case longest > standstill:
		disturbed = fmt.Sprintf("this process stood still for %v", longest)
	case queued > queue:
		disturbed = fmt.Sprintf("the controller waited %v for a processor within %v", queued, tick)
	case requests[request{verb: "get", resource: "leases"}] > 0:
		disturbed = "the controller did not renew its lease in time"
	}
	return happened, disturbed
}

// longestStandstill waits for d. It returns for how long this process did not run at most, and how long
// the controller waited for a processor within one tick at most.
func (s *simulated) longestStandstill(d time.Duration) (longest, queued time.Duration) {
	s.Helper()
	waited := s.queuedTime()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	end := time.After(d)
	for last := time.Now(); ; {
		select {
		case <-s.Context().Done():
			return longest, queued
		case <-end:
			return longest, queued
		case <-ticker.C:
			now := time.Now()
			longest, last = max(longest, now.Sub(last)-tick), now
			total := s.queuedTime()
			queued, waited = max(queued, total-waited), total
		}
	}
}

func (s *simulated) queuedTime() time.Duration {
	s.Helper()
	queued, err := harness.QueuedTime(s.controller.PID())
	s.must(err, "read how long the controller waited for a processor")
	return queued
}

// watchChanges watches the statuses; the function returns how they have changed since.
func (s *simulated) watchChanges() (changes func() []string) {
	s.Helper()
	client, err := versioned.NewForConfig(env.admin)
	s.must(err, "make a client")
	clusters := client.EtcdV1beta2().EtcdClusters(s.namespace)
	list, err := clusters.List(s.Context(), metav1.ListOptions{})
	s.must(err, "list the clusters")
	last := map[string]v1beta2.ClusterStatus{}
	for i := range list.Items {
		last[list.Items[i].Name] = list.Items[i].Status
	}
	watcher, err := clusters.Watch(s.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	s.must(err, "watch the clusters")
	done := make(chan []string, 1)
	go func() {
		var all []string
		for event := range watcher.ResultChan() {
			if c, ok := event.Object.(*v1beta2.EtcdCluster); ok {
				all = append(all, c.Name+": "+cmp.Diff(last[c.Name], c.Status))
				last[c.Name] = c.Status
			}
		}
		done <- all
	}()
	return func() []string {
		watcher.Stop()
		return <-done
	}
}
