// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

const (
	// mostWarnings is how many events are shown.
	mostWarnings = 8
	// mostEvents is how many events are read.
	mostEvents = 500
)

// Why says what is wrong with a cluster, why, and what to do.
type Why struct {
	Status `json:",inline"`

	// Faults say what is wrong, one sentence each.
	Faults []string `json:"faults,omitempty"`
	// Work says what the controller does now.
	Work []string `json:"work,omitempty"`
	// BlockedBy is what the controller waits for.
	BlockedBy *v1beta2.BlockedBy `json:"blockedBy,omitempty"`
	// Warnings are recent events about the cluster, its members and its backups.
	Warnings []Warning `json:"warnings,omitempty"`
	// NextSteps say what to do, the most urgent first.
	NextSteps []v1beta2.NextStep `json:"nextSteps,omitempty"`
}

// Warning is an event.
type Warning struct {
	Object  string      `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count"`
	Last    metav1.Time `json:"last"`
}

// ReadWhy reads one cluster and its events.
func ReadWhy(ctx context.Context, clients *connect.Clients, namespace, name string) (*Why, error) {
	status, err := ReadStatus(ctx, clients, namespace, name)
	if err != nil {
		return nil, err
	}
	why := Explain(status)
	why.Warnings, err = readWarnings(ctx, clients, status)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		why.Problems = append(why.Problems, "the events were not read: "+err.Error())
	}
	return why, nil
}

// Explain says what is wrong, as far as the status shows it.
func Explain(s *Status) *Why {
	why := &Why{Status: *s, BlockedBy: s.Cluster.Status.BlockedBy}
	why.Kind = "WhyReport"
	for _, m := range Members(s) {
		if m.Fault != "" {
			why.Faults = append(why.Faults, "Member "+m.Name+onNode(m.Node)+": "+m.Fault+".")
		}
	}
	for _, c := range Faults(s.Cluster) {
		why.Faults = append(why.Faults, sentence(c))
	}
	for _, c := range Work(s.Cluster) {
		why.Work = append(why.Work, sentence(c))
	}
	if work := OperationWork(s.Cluster.Status.Operation); work != "" {
		why.Work = append(why.Work, work)
	}
	why.NextSteps = Steps(s)
	return why
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// sentence says what a condition says.
func sentence(c v1beta2.ClusterCondition) string {
	text := fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// OperationWork says how far an operation is; empty if none is under way.
func OperationWork(op *v1beta2.ClusterOperation) string {
	if op.IsOver() {
		return ""
	}
	text := fmt.Sprintf("%s %s is %s: %s.", op.Type, op.ID, strings.ToLower(string(op.Phase)), OperationAmount(op))
	if op.Message != "" {
		text += " " + op.Message
	}
	return text
}

// OperationAmount says with how many members an operation is done.
func OperationAmount(op *v1beta2.ClusterOperation) string {
	done := 0
	for _, r := range op.Results {
		if r.State == v1beta2.OperationSucceeded {
			done++
		}
	}
	if len(op.Members) > 0 {
		return fmt.Sprintf("%d of %d members are done", done, len(op.Members))
	}
	return fmt.Sprintf("members that are done: %d", done)
}

// readWarnings returns the newest warnings about a cluster.
func readWarnings(ctx context.Context, clients *connect.Clients, s *Status) ([]Warning, error) {
	list, err := clients.Kube.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning, Limit: mostEvents})
	if err != nil {
		return nil, failure.With(err, failure.Right{Verb: "list", Resource: "events", Namespace: s.Namespace})
	}
	names := map[string]bool{s.Name: true, s.Name + "-client": true, s.Name + "-scheduled": true}
	for _, m := range Members(s) {
		names[m.Name], names[m.Pod], names[m.PVC] = true, true, true
	}
	if last := s.Cluster.Status.LastBackup; last != nil {
		names[last.Name] = true
	}
	delete(names, "")
	var result []Warning
	for i := range list.Items {
		if e := &list.Items[i]; e.Type == corev1.EventTypeWarning && names[e.InvolvedObject.Name] {
			result = append(result, warningOf(e))
		}
	}
	slices.SortStableFunc(result, func(a, b Warning) int {
		return cmp.Or(b.Last.Compare(a.Last.Time), cmp.Compare(a.Object, b.Object))
	})
	return result[:min(len(result), mostWarnings)], nil
}

func warningOf(e *corev1.Event) Warning {
	w := Warning{
		Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
		Reason: e.Reason, Message: strings.TrimSpace(e.Message), Count: max(1, e.Count), Last: e.LastTimestamp,
	}
	if e.Series != nil {
		w.Count, w.Last = max(w.Count, e.Series.Count), metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	if w.Last.IsZero() {
		w.Last = metav1.NewTime(e.EventTime.Time)
	}
	return w
}
