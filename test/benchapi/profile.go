// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"
)

// profile is how much one run measures.
type profile struct {
	name   string
	rounds int
	// box bounds each measurement.
	box box
	// applied is the number of objects for server-side apply, and updates the number of
	// updates that watchers see.
	applied, updates int
	plan             []part
}

// part is one stage of a plan.
type part struct {
	shape   shape
	objects int
	lines   []line
	// until is when the part ends after the start of the run, even if rounds are left. The
	// first round is always complete. Zero means no end.
	until time.Duration
}

// shapes are the sizes of objects.
func shapes() []shape {
	return []shape{{name: "1 KB", goal: 1 * kilobyte}, {name: "3 KB", goal: 3 * kilobyte}, {name: "10 KB", goal: 10 * kilobyte}}
}

// profileNamed returns the plan of a profile.
func profileNamed(name string) (profile, error) {
	all := shapes()
	switch name {
	case "short":
		p := profile{name: name, rounds: 3, box: box{requests: 300, least: 8, limit: 400 * time.Millisecond}, applied: 200, updates: 20}
		p.plan = []part{
			{all[1], 1000, allLines([]int{10, 100}, false), 190 * time.Second},
			{all[0], 1000, fewLines(), 240 * time.Second},
			{all[2], 1000, fewLines(), 290 * time.Second},
		}
		return p, nil
	case "full":
		p := profile{name: name, rounds: 3, box: box{requests: 2000, least: 2, limit: time.Second}, applied: 500, updates: 30}
		p.plan = []part{
			{all[1], 1000, allLines([]int{10, 100, 1000}, true), 14 * time.Minute},
			{all[0], 1000, allLines([]int{10, 100}, false), 19 * time.Minute},
			{all[2], 1000, allLines([]int{10, 100}, false), 24 * time.Minute},
			{all[1], 10000, allLines([]int{100, 1000}, false), 34 * time.Minute},
			{all[0], 10000, linesOfMany(), 39 * time.Minute},
			{all[2], 10000, linesOfMany(), 45 * time.Minute},
			// The kube-apiserver would need 16 GiB for as many objects of 10 KB of a CRD.
			{all[1], 50000, linesOfMany(), 57 * time.Minute},
			{all[0], 50000, linesOfMany(), 68 * time.Minute},
		}
		return p, nil
	case "smoke":
		p := profile{name: name, rounds: 1, box: box{requests: 50, limit: 200 * time.Millisecond}, applied: 10, updates: 3}
		p.plan = []part{{all[1], 50, allLines([]int{3}, false), 0}}
		return p, nil
	default:
		return profile{}, fmt.Errorf("there is no profile %q; choose short, full, smoke or scale", name)
	}
}

// allLines is everything that can be measured. The lines of the administrator are a part of it,
// unless both is true.
func allLines(watchers []int, both bool) []line {
	var lines []line
	add := func(l line, formats ...string) {
		for _, format := range formats {
			l.format, l.user = format, userOrdinary
			lines = append(lines, l)
			if both {
				l.user = userAdmin
				lines = append(lines, l)
			}
		}
	}
	add(line{name: "create, 1 client", clients: 1, run: create}, formatJSON)
	add(line{name: "create, 16 clients", clients: manyClients, run: create}, formatJSON, formatProtobuf)
	add(line{name: "get, 1 client", clients: 1, run: get}, formatJSON, formatProtobuf)
	add(line{name: "get, 16 clients", clients: manyClients, run: get}, formatJSON, formatProtobuf)
	add(line{name: "list, consistent", clients: 1, run: list}, formatJSON, formatProtobuf)
	add(line{name: "list, resourceVersion=0", clients: 1, run: list, query: "?resourceVersion=0"}, formatJSON, formatProtobuf)
	add(line{name: "list, pages of 500", clients: 1, run: list, query: pageQuery}, formatJSON)
	add(line{name: "kubectl get, pages of 500", clients: 1, run: list, query: pageQuery}, formatTable)
	add(line{name: "update the status, 16 clients", clients: manyClients, run: updateStatus}, formatJSON, formatProtobuf)
	add(line{name: "server-side apply, 16 clients", clients: manyClients, run: applyServerSide}, formatJSON)
	for _, n := range watchers {
		add(line{name: fmt.Sprintf("update, %d watchers", n), watchers: n, run: watchFanOut}, formatJSON, formatProtobuf, formatTable)
	}
	add(line{name: "delete collection, for each object", clients: 1, run: deleteCollection}, formatJSON)
	if !both {
		lines = append(lines,
			line{name: "create, 16 clients", user: userAdmin, format: formatJSON, clients: manyClients, run: create},
			line{name: "get, 16 clients", user: userAdmin, format: formatJSON, clients: manyClients, run: get})
	}
	return lines
}

// fewLines is what the size of objects changes most.
func fewLines() []line {
	return linesNamed("create, 16 clients", "get, 16 clients", "list, resourceVersion=0")
}

// linesOfMany is what the number of objects changes most, and what clients of many objects do.
func linesOfMany() []line {
	return linesNamed("create, 16 clients", "get, 16 clients", "list, consistent", "list, resourceVersion=0",
		"list, pages of 500", "kubectl get, pages of 500", "update the status, 16 clients")
}

// linesNamed returns lines of ordinary users.
func linesNamed(names ...string) []line {
	return slices.DeleteFunc(allLines(nil, false), func(l line) bool {
		return l.user == userAdmin || !slices.Contains(names, l.name)
	})
}
