// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"time"
)

// report is everything that a run found.
type report struct {
	Profile string    `json:"profile"`
	Begun   time.Time `json:"begun"`
	Seconds float64   `json:"seconds"`
	// Variables are those of the API server.
	Variables []string  `json:"variables"`
	Machine   machine   `json:"machine"`
	Records   []*record `json:"records"`
	Sizes     []*sizes  `json:"sizes"`
	Rest      []*restOf `json:"rest"`
}

// machine is what a reader must know to judge the figures.
type machine struct {
	Cores       int    `json:"cores"`
	MemoryKiB   int64  `json:"memoryKiB"`
	LoadAtStart string `json:"loadAtStart"`
	LoadAtEnd   string `json:"loadAtEnd"`
	Go          string `json:"go"`
}

// record is one measurement.
type record struct {
	Size    string `json:"size"`
	Objects int    `json:"objects"`
	Line    string `json:"line"`
	User    string `json:"user"`
	// Format is what the client asks for, and Served what it gets: a CRD has no protobuf.
	Format  string   `json:"format"`
	Served  string   `json:"served"`
	Serving string   `json:"serving"`
	Path    []string `json:"path"`
	Round   int      `json:"round"`
	result
}

// sizes is what the objects of a stage cost to keep.
type sizes struct {
	Size    string `json:"size"`
	Objects int    `json:"objects"`
	Serving string `json:"serving"`
	// JSON is the size of one object as JSON with managedFields.
	JSON int `json:"jsonBytes"`
	// HeapAfterCreate and HeapAfterStatus are bytes of live heap for each object.
	HeapAfterCreate float64 `json:"heapBytesAfterCreate"`
	HeapAfterStatus float64 `json:"heapBytesAfterStatusUpdate"`
	// Resident is the resident memory of the server, not for each object.
	Resident float64 `json:"residentBytes"`
	// Stored is bytes in etcd for each object.
	Stored float64 `json:"storedBytes"`
}

func newReport(profile string, variables variables) *report {
	return &report{Profile: profile, Variables: variables.list(), Begun: time.Now().UTC(), Machine: machine{
		Cores: runtime.NumCPU(), MemoryKiB: memoryKiB(), LoadAtStart: load(), Go: runtime.Version(),
	}}
}

func (r *report) add(st *stage, l line, s *serving, round int, found result) {
	r.Records = append(r.Records, &record{
		Size: st.shape.name, Objects: st.objects, Line: l.name, User: l.user, Format: l.format, Served: s.format(l.format),
		Serving: s.name, Path: s.path, Round: round, result: found,
	})
}

func (r *report) addSizes(st *stage, s *serving, found sizes) {
	found.Size, found.Objects, found.Serving = st.shape.name, st.objects, s.name
	r.Sizes = append(r.Sizes, &found)
}

// addRest adds what a process used in each part of the measurement at rest.
func (r *report) addRest(st *stage, process string, parts []float64) {
	milli := make([]float64, 0, len(parts))
	for _, used := range parts {
		milli = append(milli, 1000*used)
	}
	r.Rest = append(r.Rest, &restOf{Size: st.shape.name, Objects: st.objects, Process: process, CPU: spreadOf(milli)})
}

// addSize adds the size as JSON to what is known about a serving.
func (r *report) addSize(st *stage, s *serving, size int) {
	if known := r.sizesOf(&sizes{Size: st.shape.name, Objects: st.objects}, s.name); known != nil {
		known.JSON = size
	}
}

// finish notes the end of the run.
func (r *report) finish() {
	r.Seconds = time.Since(r.Begun).Seconds()
	r.Machine.LoadAtEnd = load()
}

// write stores all figures as JSON.
func (r *report) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

// load returns the load averages of the machine.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(content))
	return strings.Join(fields[:min(len(fields), 3)], " ")
}

func memoryKiB() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	total, err := numberAfter(content, "MemTotal:")
	if err != nil {
		return 0
	}
	return int64(total)
}

// cpuMilliseconds is CPU time for each request of all processes on the path.
func (r *record) cpuMilliseconds() float64 {
	total := 0.0
	for _, name := range r.Path {
		total += r.CPU[name]
	}
	return 1000 * total / float64(max(r.Requests, 1))
}

// rate is requests a second.
func (r *record) rate() float64 { return float64(r.Requests) / max(r.Seconds, 1e-9) }
