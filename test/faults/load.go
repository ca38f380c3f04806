// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// Clients read, write and swap a few keys; one writer beside them puts new keys. The pace
	// lets 40 cells of a minute check a million operations.
	clientCount    = 5
	clientInterval = 10 * time.Millisecond
	writeInterval  = 20 * time.Millisecond
	// decisionTime bounds the search for an order that explains a history.
	decisionTime = 3 * time.Minute

	// The status is read once a second, and a read that takes longer than readTimeout says nothing.
	readInterval = time.Second
	readTimeout  = 2 * time.Second
)

// load is what clients do in a cell, and what the status says meanwhile.
type load struct {
	stage   *stage
	clients *harness.Clients
	writer  *harness.Writer
	from    time.Time

	stopReading context.CancelFunc
	group       sync.WaitGroup
	// serving is when the status said Running and Available.
	serving []time.Time
}

// startLoad starts the clients, the writer and the reader of the status.
func startLoad(ctx context.Context, s *stage) (*load, error) {
	clients, err := s.env.Clients(ctx, s.namespace, clusterName+"-client", clientCount, clientInterval, s.members.TLS)
	if err != nil {
		return nil, fmt.Errorf("start the clients: %w", err)
	}
	writer, err := s.members.Write(ctx, writeInterval)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the writer: %w", err), clients.Stop())
	}
	ctx, stop := context.WithCancel(ctx)
	l := &load{stage: s, clients: clients, writer: writer, from: time.Now(), stopReading: stop}
	l.group.Go(func() { l.readStatus(ctx) })
	return l, nil
}

// readStatus notes when the status says that the cluster serves. It reads live: what a watch
// delivered earlier is nothing that the API says now.
func (l *load) readStatus(ctx context.Context) {
	ticker := time.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		at := time.Now()
		object, err := l.read(ctx)
		// An API that does not respond says nothing.
		if err == nil && object.Status.Phase == v1beta2.ClusterPhaseRunning &&
			harness.HasCondition(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) {
			l.serving = append(l.serving, at)
		}
	}
}

func (l *load) read(ctx context.Context) (*v1beta2.EtcdCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return l.stage.env.Etcd.EtcdV1beta2().EtcdClusters(l.stage.namespace).Get(ctx, clusterName, metav1.GetOptions{})
}

// measured is what a load has seen.
type measured struct {
	observation
	operations, failed int
	history            *harness.History
	report             *harness.Report
}

// stop ends the load and returns what it has seen.
func (l *load) stop() (*measured, error) {
	to := time.Now()
	report, writerErr := l.writer.Stop()
	clientsErr := l.clients.Stop()
	l.stopReading()
	l.group.Wait()
	if err := errors.Join(writerErr, clientsErr); err != nil {
		return nil, fmt.Errorf("stop the clients: %w", err)
	}
	m := &measured{history: l.clients.History, report: report, observation: observation{from: l.from, to: to, serving: l.serving}}
	m.acknowledged = slices.Concat(report.AcknowledgedAt, m.history.Acknowledged())
	slices.SortFunc(m.acknowledged, time.Time.Compare)
	operations := m.history.Operations()
	m.operations, m.failed = len(operations)+report.Sent, len(operations)-m.history.Responses()+report.Failed
	return m, nil
}

// check returns what contradicts the promises about data: one order of all operations explains
// each response, and each member has every acknowledged write and the data from before the operation.
func (m *measured) check(ctx context.Context, s *stage) []string {
	var list []string
	if err := m.history.Check(decisionTime); err != nil {
		list = append(list, fmt.Sprintf("linearizability: %v", err))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("not within %v", checkTimeout))
	defer cancel()
	for doing, holds := range map[string]func(context.Context) error{
		"read the acknowledged writes":            func(ctx context.Context) error { return s.members.Kept(ctx, m.report) },
		"read the data from before the operation": func(ctx context.Context) error { return s.members.Holds(ctx, s.data) },
	} {
		// A member may be slow; a write that is lost does not come back.
		if err := s.eventually(ctx, doing, holds); err != nil {
			list = append(list, err.Error())
		}
	}
	return list
}
