// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// View is what the page shows.
type View struct {
	// Scope says which clusters are shown.
	Scope    string    `json:"scope"`
	Clusters []Cluster `json:"clusters"`
	Backups  Table     `json:"backups"`
	Restores Table     `json:"restores"`
	// Problem says why the rest is old; empty if it is not.
	Problem string `json:"problem,omitempty"`
}

// Cluster is one cluster, in the words of kubectl etcd status.
type Cluster struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	// Tone is good, warning or bad.
	Tone    string          `json:"tone"`
	Message string          `json:"message,omitempty"`
	Details []render.Detail `json:"details"`
	// Work are the details that say what is under way.
	Work    []string `json:"work"`
	Members Table    `json:"members"`
	Steps   []Step   `json:"steps"`
}

// Step is something to do.
type Step struct {
	Why     string `json:"why"`
	Command string `json:"command,omitempty"`
}

// Table has rows of as many cells as it has columns.
type Table struct {
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
	// Problem says why the rows are missing.
	Problem string `json:"problem,omitempty"`
}

// Row is one row, and what is wrong with it.
type Row struct {
	Cells []string `json:"cells"`
	Tone  string   `json:"tone,omitempty"`
	Fault string   `json:"fault,omitempty"`
}

// Tones.
const (
	toneGood    = "good"
	toneWarning = "warning"
	toneBad     = "bad"
)

// newCluster returns what is shown of a report.
func newCluster(s *report.Status, style render.Style) Cluster {
	c := Cluster{Name: s.Namespace + "/" + s.Name, Verdict: string(s.Verdict), Tone: toneOf(s.Verdict), Message: s.Message, Details: render.Details(s, style)}
	if !s.Live {
		c.Verdict += " " + render.NotLive
	}
	for _, d := range c.Details {
		switch d.Label {
		case render.LabelUnderWay, render.LabelOperation, render.LabelRecovery:
			c.Work = append(c.Work, d.Text)
		}
	}
	c.Members.Columns = render.MemberColumns(style)
	members := report.Members(s)
	for i := range members {
		m := &members[i]
		row := Row{Cells: render.MemberRow(m, style), Fault: m.Fault, Tone: toneWarning}
		switch {
		case m.Healthy:
			row.Tone = toneGood
		case m.Fault != "":
			row.Tone = toneBad
		}
		c.Members.Rows = append(c.Members.Rows, row)
	}
	for _, step := range report.Steps(s) {
		c.Steps = append(c.Steps, Step{step.Why, step.Command})
	}
	return c
}

func toneOf(v v1beta2.ClusterVerdict) string {
	switch v {
	case v1beta2.VerdictHealthy:
		return toneGood
	case v1beta2.VerdictCreating, v1beta2.VerdictHibernated, v1beta2.VerdictDegraded:
		return toneWarning
	default:
		return toneBad
	}
}

// readTable reads the columns that kubectl get shows, which the API server writes. Of one cluster
// it keeps the rows that name it. That it cannot be read is part of the page.
func readTable(ctx context.Context, clients *connect.Clients, namespace, resource, cluster string) Table {
	response := clients.Etcd.EtcdV1beta2().RESTClient().Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx)
	if err := response.Error(); err != nil { // Raw does not read what the server says about an error
		return Table{Problem: failure.With(err, failure.Right{Verb: "list", Resource: resource, Namespace: namespace}).Error()}
	}
	raw, err := response.Raw()
	if err != nil {
		return Table{Problem: err.Error()}
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return Table{Problem: fmt.Sprintf("the API server returned no table of %s: %v", resource, err)}
	}
	return newTable(&table, cluster)
}

// newTable keeps the columns that kubectl get shows without -o wide, and the message, behind the
// namespace.
func newTable(table *metav1.Table, cluster string) Table {
	result := Table{Columns: []string{"NAMESPACE"}}
	var kept []int
	ofCluster := -1
	for i, c := range table.ColumnDefinitions {
		if strings.EqualFold(c.Name, "Cluster") {
			ofCluster = i
		}
		if c.Priority == 0 || c.Name == "Message" {
			kept = append(kept, i)
			result.Columns = append(result.Columns, strings.ToUpper(c.Name))
		}
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if cluster != "" && (ofCluster < 0 || ofCluster >= len(row.Cells) || fmt.Sprint(row.Cells[ofCluster]) != cluster) {
			continue
		}
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			return Table{Problem: fmt.Sprintf("the API server returned a row without an object: %v", err)}
		}
		cells := []string{object.Namespace}
		for _, column := range kept {
			text := ""
			if column < len(row.Cells) && row.Cells[column] != nil {
				text = fmt.Sprint(row.Cells[column])
			}
			cells = append(cells, text)
		}
		result.Rows = append(result.Rows, Row{Cells: cells})
	}
	slices.SortStableFunc(result.Rows, func(a, b Row) int { return cmp.Compare(a.Cells[0], b.Cells[0]) })
	return result
}
