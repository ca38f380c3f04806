// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m", 2 * time.Hour: "2h", 47 * time.Hour: "47h", 50 * time.Hour: "2d",
	} {
		if got := render.Age(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// TestColumnsAlign: the columns of a table start at the same place in every row, with colors
// and without.
func TestColumnsAlign(t *testing.T) {
	for _, style := range []render.Style{{Now: plugintest.Now}, {Now: plugintest.Now, Color: true, Unicode: true}} {
		state := plugintest.Degraded()
		var b strings.Builder
		render.Status(&b, []*report.Status{{Cluster: state.Cluster, Health: state.Health, Live: true}}, style)
		column := -1
		rows := 0
		for line := range strings.Lines(b.String()) {
			plain := []rune(withoutColors(line))
			at := strings.Index(string(plain), "node-")
			if !strings.Contains(line, "main-") || at < 0 || strings.Contains(line, "fault") {
				continue
			}
			at = len([]rune(string(plain)[:at]))
			if column >= 0 && at != column {
				t.Errorf("the node is at column %d, not %d: %s", at, column, line)
			}
			column = at
			rows++
		}
		if rows != 3 {
			t.Errorf("%d rows, want 3:\n%s", rows, b.String())
		}
	}
}

func withoutColors(text string) string {
	for {
		start := strings.Index(text, "\x1b[")
		if start < 0 {
			return text
		}
		text = text[:start] + text[start+strings.IndexByte(text[start:], 'm')+1:]
	}
}

func TestSummary(t *testing.T) {
	for name, want := range map[string]string{
		"healthy":              "prod/main  Healthy  etcd 3.6.16  voters: 3 of 3 serve, fault tolerance 1, leader main-a7k2",
		"degraded":             "prod/main  Degraded  etcd 3.6.16  voters: 2 of 3 serve, fault tolerance 0, leader main-a7k2  2 of 3 voters serve; main-q3m8 does not respond",
		"upgrading":            "prod/main  Healthy  etcd 3.6.16 to 3.6.18, 1 of 3 members run it  voters: 3 of 3 serve, fault tolerance 1, leader main-a7k2",
		"upgrading to a build": "prod/main  Healthy  etcd 3.6.16 to 3.6.18-arm64, 1 of 3 members run it  voters: 3 of 3 serve, fault tolerance 1, leader main-a7k2",
		"another build":        "prod/main  Healthy  etcd 3.6.16 to 3.6.16-arm64  voters: 3 of 3 serve, fault tolerance 1, leader main-a7k2",
	} {
		states := plugintest.States()
		states["upgrading to a build"], states["another build"] = plugintest.Upgrading(), plugintest.Healthy()
		states["upgrading to a build"].Cluster.Spec.Version, states["another build"].Cluster.Spec.Version = "3.6.18-arm64", "3.6.16-arm64"
		state := states[name]
		got := render.Summary(&report.Status{
			Namespace: "prod", Name: "main", Verdict: state.Health.Verdict, Message: state.Health.Message, Live: true, Cluster: state.Cluster, Health: state.Health,
		})
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}
