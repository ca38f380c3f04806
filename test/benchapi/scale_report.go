// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// errEvents means that watches did not read every event once.
var errEvents = errors.New("watches missed or repeated events")

// scaleReport is everything that a run found. Memory is in bytes, and CPU time in seconds.
type scaleReport struct {
	Begun     time.Time `json:"begun"`
	Seconds   float64   `json:"seconds"`
	Machine   machine   `json:"machine"`
	Objects   int       `json:"objects"`
	Watchers  int       `json:"watchers"`
	Embedded  bool      `json:"embeddedEtcd"`
	Variables []string  `json:"variables"`

	// Spec, JSON and Fields are bytes of one object as JSON: what its author writes, the whole
	// object, and its managed fields. Stored is bytes in etcd with the key.
	Spec   int     `json:"authorBytes"`
	JSON   int     `json:"jsonBytes"`
	Fields int     `json:"managedFieldsBytes"`
	Stored float64 `json:"storedBytes"`

	Empty   scaleMemory `json:"empty"`
	Started scaleMemory `json:"started"`
	End     scaleMemory `json:"end"`

	StartSeconds float64            `json:"startSeconds"`
	StartCPU     map[string]float64 `json:"startCPUSeconds"`
	StartPeak    float64            `json:"startPeakBytes"`

	Lists []scaleList `json:"lists"`

	Requests       []scaleRequests    `json:"requests"`
	TrafficSeconds float64            `json:"trafficSeconds"`
	TrafficCPU     map[string]float64 `json:"trafficCPUSeconds"`
	Client         float64            `json:"clientCPUSeconds"`
	TrafficPeak    float64            `json:"trafficPeakBytes"`

	// Retries is how many requests were repeated, because a server rejected them with Retry-After. The wait
	// counts in the latency.
	Retries int64 `json:"retries"`

	// Events is how many changes etcd reports, and EventsRead how many events all watches have
	// read together.
	Events     int `json:"events"`
	EventsRead int `json:"eventsRead"`
	Missed     int `json:"missedEvents"`
	Repeated   int `json:"repeatedEvents"`
	// Reopened is how often the server has ended a watch, which then began again where it ended.
	Reopened int `json:"reopenedWatches"`
}

// scaleMemory is the memory of the API server after a garbage collection. Anonymous is the part of
// the resident memory that is not pages of files, such as the database of etcd.
type scaleMemory struct {
	Heap      float64 `json:"heapBytes"`
	Resident  float64 `json:"residentBytes"`
	Anonymous float64 `json:"anonymousBytes"`
}

// scaleList is one list. Peak is the largest resident memory of the API server meanwhile.
type scaleList struct {
	Name    string  `json:"name"`
	Format  string  `json:"format"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpuSeconds"`
	Bytes   int64   `json:"bytes"`
	Peak    float64 `json:"peakBytes"`
	// Error is why the list was incomplete; empty if it was complete.
	Error string `json:"error,omitempty"`
}

// scaleRequests is the requests of one kind, with latencies in milliseconds.
type scaleRequests struct {
	Kind   string  `json:"kind"`
	Number int     `json:"number"`
	P50    float64 `json:"p50Milliseconds"`
	P99    float64 `json:"p99Milliseconds"`
	Max    float64 `json:"maxMilliseconds"`
}

func newScaleReport(s scaleSettings, variables variables) *scaleReport {
	return &scaleReport{
		Begun: time.Now().UTC(), Objects: s.objects, Watchers: s.watchers, Embedded: s.embedded, Variables: variables.list(),
		Machine: machine{Cores: runtime.NumCPU(), MemoryKiB: memoryKiB(), LoadAtStart: load(), Go: runtime.Version()},
	}
}

// describe says how large an object is.
func (f *scaleReport) describe(templates []*v1beta2.EtcdCluster) {
	whole := templates[0]
	written := newScaleCluster(0, whole.Namespace, whole.Name)
	for part, size := range map[any]*int{
		whole: &f.JSON, &applied{written.APIVersion, written.Kind, written.ObjectMeta, written.Spec}: &f.Spec, &whole.ManagedFields: &f.Fields,
	} {
		if encoded, err := json.Marshal(part); err == nil {
			*size = len(encoded)
		}
	}
}

// verdict returns an error if watches did not read every event once.
func (f *scaleReport) verdict() error {
	if f.Missed == 0 && f.Repeated == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d missed, %d repeated", errEvents, f.Missed, f.Repeated)
}

// save writes the results to files and the tables to standard output.
func (f *scaleReport) save(out string) error {
	f.Seconds, f.Machine.LoadAtEnd = time.Since(f.Begun).Seconds(), load()
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	var table bytes.Buffer
	f.print(&table)
	_, err = os.Stdout.Write(table.Bytes())
	return errors.Join(err,
		os.WriteFile(filepath.Join(out, "bench-api-scale.json"), encoded, 0o600),
		os.WriteFile(filepath.Join(out, "bench-api-scale.md"), table.Bytes(), 0o600))
}

const mebibyte = 1 << 20

// print writes the tables.
func (f *scaleReport) print(w io.Writer) {
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	storage := "etcd beside the API server"
	if f.Embedded {
		storage = "etcd in the API server"
	}
	line("%d objects, %d watches, %s, %s, %d cores, %s; %.0f s; load %s at the start and %s at the end\n",
		f.Objects, f.Watchers, storage, strings.Join(f.Variables, ", "), f.Machine.Cores, f.Machine.Go, f.Seconds, f.Machine.LoadAtStart, f.Machine.LoadAtEnd)
	line("One object: %d bytes as its author writes it; %d bytes as JSON with status, %d of them managed fields; %.0f bytes in etcd.\n",
		f.Spec, f.JSON, f.Fields, f.Stored)
	line("| memory of the API server, MiB | live heap | resident | of this anonymous | heap for each object, bytes |\n|---|---|---|---|---|")
	for _, m := range []struct {
		moment string
		scaleMemory
	}{{"without objects", f.Empty}, {"started with all objects", f.Started}, {"at the end", f.End}} {
		each := "–"
		if m.moment != "without objects" && m.Heap > 0 {
			each = fmt.Sprintf("%.0f", (m.Heap-f.Empty.Heap)/float64(max(f.Objects, 1)))
		}
		line("| %s | %.0f | %.0f | %.0f | %s |", m.moment, m.Heap/mebibyte, m.Resident/mebibyte, m.Anonymous/mebibyte, each)
	}
	line("\n| what | seconds | CPU seconds of the API server | MB | largest resident memory, MiB |\n|---|---|---|---|---|")
	line("| start until /readyz | %.1f | %.1f | – | %.0f |", f.StartSeconds, f.StartCPU[ownServer], f.StartPeak/mebibyte)
	for _, l := range f.Lists {
		if l.Error != "" {
			line("| %s; %s | failed after %.1f | %.1f | – | %.0f |", l.Name, l.Format, l.Seconds, l.CPU, l.Peak/mebibyte)
			continue
		}
		line("| %s; %s | %.1f | %.1f | %.0f | %.0f |", l.Name, l.Format, l.Seconds, l.CPU, float64(l.Bytes)/1e6, l.Peak/mebibyte)
	}
	line("\n| %d requests a second, %d watches | number | p50, ms | p99, ms | longest, ms |\n|---|---|---|---|---|", requestRate, f.Watchers)
	for _, r := range f.Requests {
		line("| %s | %d | %.1f | %.1f | %.1f |", r.Kind, r.Number, r.P50, r.P99, r.Max)
	}
	line("\nRequests that were repeated after a rejection with Retry-After: %d.", f.Retries)
	line("Events: %d changes, %d events read by all watches, %d missed, %d repeated; watches that the server ended and that went on after their last event: %d. Largest resident memory meanwhile: %.0f MiB.",
		f.Events, f.EventsRead, f.Missed, f.Repeated, f.Reopened, f.TrafficPeak/mebibyte)
	var used []string
	for _, name := range slices.Sorted(maps.Keys(f.TrafficCPU)) {
		used = append(used, fmt.Sprintf("%s %.2f", name, f.TrafficCPU[name]/max(f.TrafficSeconds, 1)))
	}
	line("CPU seconds in a second: %s, the benchmark %.2f.", strings.Join(used, ", "), f.Client/max(f.TrafficSeconds, 1))
}
