// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
)

// Kinds of panels, as Grafana calls them.
const (
	timeSeries    = "timeseries"
	table         = "table"
	stateTimeline = "state-timeline"
)

const (
	gridWidth     = 24
	panelHeight   = 8
	schemaVersion = 39
)

// dashboard is what this program knows about one dashboard.
type dashboard struct {
	name, title string
	variables   []variable
	events      []event
	panels      []panel
}

// panel shows queries. width is in columns of a grid of 24.
type panel struct {
	title, help, kind, unit string
	width                   int
	queries                 []query
}

// query is an expression of PromQL. legend names its series.
type query struct{ expr, legend string }

// variable is a list of values from which the reader chooses.
type variable struct{ name, query string }

// event marks times on all panels.
type event struct{ name, expr, text string }

// object is a JSON object.
type object = map[string]any

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// json returns the dashboard as Grafana imports it. Keys are sorted, so that the file changes
// only where the dashboard does.
func (d dashboard) json() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(object{
		"uid": "etcd-operator-" + d.name, "title": d.title, "tags": []string{"etcd-operator"},
		"schemaVersion": schemaVersion, "editable": true, "refresh": "1m", "timezone": "utc",
		"time":        object{"from": "now-6h", "to": "now"},
		"templating":  object{"list": d.templating()},
		"annotations": object{"list": d.annotations()},
		"panels":      d.grid(),
	})
	return text.Bytes(), err
}

func (d dashboard) templating() []object {
	list := []object{{"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"}}
	for _, v := range d.variables {
		list = append(list, object{
			"name": v.name, "type": "query", "datasource": datasource, "query": v.query, "refresh": 2, "sort": 1,
		})
	}
	return list
}

func (d dashboard) annotations() []object {
	list := []object{}
	for _, e := range d.events {
		list = append(list, object{
			"name": e.name, "datasource": datasource, "enable": true, "expr": e.expr, "titleFormat": e.name, "textFormat": e.text, "step": "60s",
		})
	}
	return list
}

// grid places the panels from left to right, row by row.
func (d dashboard) grid() []object {
	var list []object
	x, y := 0, 0
	for i, p := range d.panels {
		if x+p.width > gridWidth {
			x, y = 0, y+panelHeight
		}
		list = append(list, p.object(i+1, object{"x": x, "y": y, "w": p.width, "h": panelHeight}))
		x += p.width
	}
	return list
}

func (p panel) object(id int, position object) object {
	var targets []object
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": q.expr, "legendFormat": q.legend}
		if p.kind == table {
			t["instant"], t["format"] = true, table
		}
		targets = append(targets, t)
	}
	o := object{
		"id": id, "type": p.kind, "title": p.title, "description": p.help, "datasource": datasource, "gridPos": position,
		"targets": targets, "fieldConfig": object{"defaults": object{"unit": p.unit}, "overrides": []object{}},
	}
	if p.kind == table {
		// The time is the same in each row, and names of metrics and of scrapes help no reader.
		hidden := object{"Time": true, "__name__": true, "container": true, "endpoint": true, "instance": true, "job": true, "pod": true}
		o["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": hidden}}}
	}
	return o
}
