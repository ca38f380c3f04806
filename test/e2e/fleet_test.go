// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// fleetInterval is the variable that asks for TestFleetKeepsItsSchedule, with the
	// interval of the backups, such as 5m.
	fleetInterval = "ETCD_OPERATOR_FLEET_INTERVAL"
	fleetClusters = 20
	fleetBackups  = 10
)

// TestFleetKeepsItsSchedule runs 200 periodic backups of 20 clusters; the ten of
// a cluster are due at the same time, beside one whose bucket does not exist and one whose
// secret is wrong. Every time of every good one must have its backup, before the next one.
// It takes two intervals and needs a machine that does nothing else.
func TestFleetKeepsItsSchedule(t *testing.T) {
	if os.Getenv(fleetInterval) == "" {
		t.Skipf("it takes long; set %s", fleetInterval)
	}
	interval, err := time.ParseDuration(os.Getenv(fleetInterval))
	if err != nil {
		t.Fatal(err)
	}
	s := startFor(t, 4*interval).s3()
	var clusters strings.Builder
	for c := range fleetClusters {
		fmt.Fprintf(&clusters, "---\n%s", manifest(fmt.Sprintf("fleet-%02d", c), 1, etcdVersion))
	}
	s.apply(clusters.String())
	for c := range fleetClusters {
		s.cluster(fmt.Sprintf("fleet-%02d", c)).settle(1)
	}
	policy := fmt.Sprintf("\n  backupPolicy: {backupIntervalInSecond: %d}\n  etcdCluster: {name: fleet-%%02d}", int(interval.Seconds()))
	s.apply(backupManifest("broken-bucket", fmt.Sprintf(policy, 0)+toS3("none/broken-bucket", "aws")) + "---\n" +
		backupManifest("broken-secret", fmt.Sprintf(policy, 0)+toS3("backups/broken-secret", "aws-wrong")))
	wave := time.NewTicker(interval / 2 / fleetClusters)
	defer wave.Stop()
	for c := range fleetClusters {
		var ten strings.Builder
		for n := range fleetBackups {
			name := fmt.Sprintf("fleet-%02d-%d", c, n)
			fmt.Fprintf(&ten, "---\n%s", backupManifest(name, fmt.Sprintf(policy, c)+toS3("backups/"+name, "aws")))
		}
		s.apply(ten.String())
		<-wave.C
	}
	made := s.awaitFleet(interval)
	n := len(made.late)
	if n == 0 {
		t.Fatal("there is no backup")
	}
	t.Logf("interval %v: %d of %d times have a backup; begun after their time by %v (median), %v (99 %%), %v (most); taken %v (median), %v (most)",
		interval, n, made.due, made.late[n/2], made.late[n*99/100], made.late[n-1], made.took[n/2], made.took[n-1])
	for name, reason := range map[string]agent.ErrorClass{"broken-bucket": agent.ClassNoBucket, "broken-secret": agent.ClassStoreDenied} {
		s.awaitBackup(s.ctx(), name, string(reason), func(b *v1beta2.EtcdBackup) bool {
			c := meta.FindStatusCondition(b.Status.Conditions, "Succeeded")
			return c != nil && c.Reason == string(reason) && !b.Status.Succeeded && b.Status.Attempts > 0
		})
	}
	s.noCanary()
}

// fleet is what has become of the times at which backups were due.
type fleet struct {
	due        int
	late, took []time.Duration
}

// awaitFleet waits until the second time of every backup has one, or the third is near.
func (s *scenario) awaitFleet(interval time.Duration) fleet {
	s.Helper()
	view, err := env.Backups(s.ctx(), s.namespace)
	s.must(err, "watch the backups")
	defer view.Close()
	var f fleet
	err = view.Await(s.within(2*interval), func(list []*v1beta2.EtcdBackup) bool {
		f = fleet{}
		for _, b := range list {
			if strings.HasPrefix(b.Name, "fleet-") {
				f.count(b, interval)
			}
		}
		return f.due == 2*fleetClusters*fleetBackups && len(f.late) == f.due
	})
	if err != nil {
		s.Errorf("not every time has its backup: %v", err)
	}
	slices.Sort(f.took)
	slices.Sort(f.late)
	return f
}

// count adds the first two times of a backup.
func (f *fleet) count(b *v1beta2.EtcdBackup, interval time.Duration) {
	const counted = 2
	f.due += counted
	seen := map[int]bool{}
	for _, r := range goodOnes(b) {
		late := r.StartTime.Sub(b.CreationTimestamp.Time)
		due := int(late / interval)
		if due >= counted || seen[due] || r.CompletionTime == nil {
			continue
		}
		seen[due] = true
		f.late = append(f.late, late%interval)
		f.took = append(f.took, r.CompletionTime.Sub(r.StartTime.Time))
	}
}
