// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// series is the rounds of one line.
type series struct {
	first     *record
	byServing map[string][]*record
}

// columns is the order of the servings in tables.
var columns = []string{servingCRD, servingAggregated, servingDirect}

// grouped returns the lines in the order in which they were first measured.
func grouped(records []*record) []*series {
	type key struct {
		size             string
		objects          int
		line, user, form string
	}
	var all []*series
	known := map[key]*series{}
	for _, r := range records {
		k := key{r.Size, r.Objects, r.Line, r.User, r.Format}
		if known[k] == nil {
			known[k] = &series{first: r, byServing: map[string][]*record{}}
			all = append(all, known[k])
		}
		known[k].byServing[r.Serving] = append(known[k].byServing[r.Serving], r)
	}
	return all
}

// values returns one figure of each round.
func (s *series) values(serving string, figure func(*record) float64) []float64 {
	var values []float64
	for _, r := range s.byServing[serving] {
		values = append(values, figure(r))
	}
	return values
}

// ratio returns CRD divided by a serving, round by round.
func (s *series) ratio(serving string) spread {
	return spreadOf(ratios(s.values(servingCRD, (*record).cpuMilliseconds), s.values(serving, (*record).cpuMilliseconds)))
}

func (s *series) name() string {
	return fmt.Sprintf("%s; %s, %s", s.first.Line, s.first.Format, s.first.User)
}

// print writes the tables as Markdown.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "Profile %s, %s, %.0f s. %s. %d cores, %.1f GiB, %s. Load %s before, %s after.\n",
		r.Profile, r.Begun.Format("2006-01-02 15:04 MST"), r.Seconds, strings.Join(r.Variables, ", "), r.Machine.Cores, float64(r.Machine.MemoryKiB)/(1<<20), r.Machine.Go, r.Machine.LoadAtStart, r.Machine.LoadAtEnd)
	all := grouped(r.Records)
	for _, crd := range r.Sizes {
		own := r.sizesOf(crd, servingDirect)
		if crd.Serving != servingCRD || own == nil {
			continue
		}
		fmt.Fprintf(out, "\n## %d objects of %s\n", crd.Objects, crd.Size)
		printSizes(out, crd, own)
		lines := ofStage(all, crd)
		if len(lines) == 0 {
			continue
		}
		r.printRest(out, crd)
		printCPU(out, lines)
		printLatency(out, lines)
		printProcesses(out, lines)
	}
}

// ofStage returns the lines of a stage.
func ofStage(all []*series, stage *sizes) []*series {
	return slices.DeleteFunc(slices.Clone(all), func(s *series) bool { return s.first.Size != stage.Size || s.first.Objects != stage.Objects })
}

// sizesOf returns the sizes of another serving in the same stage.
func (r *report) sizesOf(stage *sizes, serving string) *sizes {
	for _, s := range r.Sizes {
		if s.Size == stage.Size && s.Objects == stage.Objects && s.Serving == serving {
			return s
		}
	}
	return nil
}

func printSizes(out io.Writer, crd, own *sizes) {
	fmt.Fprintln(out, "\n| for each object | CRD | API server | CRD ÷ API server |\n|---|---|---|---|")
	for _, row := range []struct {
		name   string
		figure func(*sizes) float64
	}{
		{"bytes as JSON, with managedFields", func(s *sizes) float64 { return float64(s.JSON) }},
		{"bytes in etcd, with the key", func(s *sizes) float64 { return s.Stored }},
		{"live heap after the objects were made, bytes", func(s *sizes) float64 { return s.HeapAfterCreate }},
		{"live heap after a status update of each, bytes", func(s *sizes) float64 { return s.HeapAfterStatus }},
		{"resident memory of the whole server, MiB", func(s *sizes) float64 { return s.Resident / (1 << 20) }},
	} {
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %s |\n", row.name, row.figure(crd), row.figure(own), number(row.figure(crd)/row.figure(own)))
	}
}

// printRest shows what the processes of a stage use without requests.
func (r *report) printRest(out io.Writer, stage *sizes) {
	fmt.Fprintln(out, "\nAt rest, without requests: milliseconds of CPU time in a second. The tables below are without this.")
	fmt.Fprintln(out, "\n| process | median (lowest to highest second) |\n|---|---|")
	for _, rest := range r.Rest {
		if rest.Size == stage.Size && rest.Objects == stage.Objects {
			fmt.Fprintf(out, "| %s | %s |\n", rest.Process, rest.CPU)
		}
	}
}

func printCPU(out io.Writer, all []*series) {
	fmt.Fprintln(out, "\nCPU seconds for 1,000 requests, all processes on the path: median (lowest to highest round).")
	fmt.Fprintln(out, "\n| request | CRD | aggregated | direct | CRD ÷ aggregated | CRD ÷ direct |\n|---|---|---|---|---|---|")
	for _, s := range all {
		fmt.Fprintf(out, "| %s |", s.name())
		for _, serving := range columns {
			fmt.Fprintf(out, " %s |", spreadOf(s.values(serving, (*record).cpuMilliseconds)))
		}
		fmt.Fprintf(out, " **%s** | **%s** |\n", s.ratio(servingAggregated), s.ratio(servingDirect))
	}
}

func printLatency(out io.Writer, all []*series) {
	fmt.Fprintln(out, "\nLatency p50 / p99 in ms, and requests a second: medians of the rounds.")
	fmt.Fprintln(out, "\n| request | CRD | aggregated | direct |\n|---|---|---|---|")
	for _, s := range all {
		cells := make([]string, 0, len(columns))
		for _, serving := range columns {
			cells = append(cells, fmt.Sprintf("%s / %s, %s/s",
				number(median(s.values(serving, func(r *record) float64 { return r.P50 }))),
				number(median(s.values(serving, func(r *record) float64 { return r.P99 }))),
				number(median(s.values(serving, (*record).rate)))))
		}
		fmt.Fprintf(out, "| %s | %s |\n", s.name(), strings.Join(cells, " | "))
	}
}

func printProcesses(out io.Writer, all []*series) {
	fmt.Fprintln(out, "\nThe same CPU seconds by process: kube-apiserver + API server + etcd. Medians.")
	fmt.Fprintln(out, "\n| request | CRD | aggregated | direct |\n|---|---|---|---|")
	for _, s := range all {
		cells := make([]string, 0, len(columns))
		for _, serving := range columns {
			cells = append(cells, s.processes(serving))
		}
		fmt.Fprintf(out, "| %s | %s |\n", s.name(), strings.Join(cells, " | "))
	}
}

func (s *series) processes(serving string) string {
	etcd := ownEtcd
	if serving == servingCRD {
		etcd = kubeEtcd
	}
	var parts []string
	for _, process := range []string{kubeServer, ownServer, etcd} {
		if serving == servingCRD && process == ownServer {
			parts = append(parts, "–")
			continue
		}
		parts = append(parts, number(median(s.values(serving, func(r *record) float64 {
			return 1000 * r.CPU[process] / float64(max(r.Requests, 1))
		}))))
	}
	return strings.Join(parts, " + ")
}

// String shows a median with its range.
func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Low), number(s.High))
}

// number shows a figure with as many digits as it deserves.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
