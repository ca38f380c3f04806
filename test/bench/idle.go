// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// calmDown is how long the controller is left alone before it is watched: its last
// events go out with a delay.
const calmDown = 20 * time.Second

// cost is what a process has used.
type cost struct {
	pid       int
	processor float64
}

// watchIdle counts the requests, the processor time and the memory of the programs
// while nothing happens.
func (b *bench) watchIdle(ctx context.Context) error {
	if err := rest(ctx, calmDown); err != nil {
		return err
	}
	programs := []string{harness.Controller, harness.APIServer}
	before := map[string]cost{}
	for _, name := range programs {
		pid, err := b.process(ctx, name)
		if err != nil {
			return err
		}
		used, err := harness.ProcessorSeconds(pid)
		if err != nil {
			return err
		}
		before[name] = cost{pid, used}
	}
	from := time.Now()
	b.say("watching for %v", b.idle)
	if err := rest(ctx, b.idle); err != nil {
		return err
	}
	until := time.Now()
	at := fmt.Sprintf(" with %d clusters at rest", b.clusters)
	for _, name := range programs {
		used, err := harness.ProcessorSeconds(before[name].pid)
		if err != nil {
			return fmt.Errorf("%s has restarted: %w", name, err)
		}
		memory, err := harness.ResidentMemory(before[name].pid)
		if err != nil {
			return err
		}
		b.table.add("memory of "+name+at, "MiB", float64(memory)/(1<<20))
		b.table.add("processor of "+name+at, "% of a core", 100*(used-before[name].processor)/until.Sub(from).Seconds())
	}
	return b.countRequests(ctx, from, until)
}

// rest waits for a time; what is measured is that nothing happens in it.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// countRequests reads the requests of the controller from the audit log.
func (b *bench) countRequests(ctx context.Context, from, until time.Time) error {
	dir, err := b.LocalTool(ctx, "logs-dir")
	if err != nil {
		return err
	}
	user := "system:serviceaccount:" + harness.SystemNamespace + ":" + harness.Controller
	counts := map[string]int{}
	total, leases := 0, 0
	err = harness.EachAuditEvent(filepath.Join(dir, "audit.log"), func(e *auditv1.Event) {
		if e.User.Username != user || e.Stage != auditv1.StageRequestReceived || !between(e.RequestReceivedTimestamp, from, until) {
			return
		}
		total++
		resource := ""
		if e.ObjectRef != nil {
			resource = e.ObjectRef.Resource
		}
		if resource == "leases" {
			leases++
		}
		counts[e.Verb+" "+resource]++
	})
	if errors.Is(err, fs.ErrNotExist) {
		b.table.note("The local Kubernetes runs without an audit log (up --audit): requests were not counted.")
		return nil
	}
	if err != nil {
		return err
	}
	minutes := until.Sub(from).Minutes()
	b.table.add(fmt.Sprintf("requests of the controller with %d clusters at rest", b.clusters), "per minute", float64(total)/minutes)
	b.table.add("of these to renew its lease", "per minute", float64(leases)/minutes)
	b.table.note("Requests at rest in %v: %s.", until.Sub(from).Round(time.Second), listed(counts))
	return nil
}

func between(t metav1.MicroTime, from, until time.Time) bool {
	return !t.Time.Before(from) && t.Time.Before(until)
}

func listed(counts map[string]int) string {
	var list []string
	for what, n := range counts {
		list = append(list, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
