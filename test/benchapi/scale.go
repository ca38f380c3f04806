// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// profileScale is the profile that measures the API server with many objects, without a CRD.
const profileScale = "scale"

const (
	// scalePatience bounds the whole run.
	scalePatience = 20 * time.Minute
	// readyPatience is how long the API server may need to start with all objects.
	readyPatience = 5 * time.Minute
)

// scaleSettings are the flags of the profile.
type scaleSettings struct {
	objects, watchers int
	duration          time.Duration
	embedded          bool
}

func (s *scaleSettings) addFlags() {
	flag.IntVar(&s.objects, "objects", 150_000, "profile scale: number of EtcdClusters")
	flag.IntVar(&s.watchers, "watchers", 1000, "profile scale: number of watches")
	flag.DurationVar(&s.duration, "duration", time.Minute, "profile scale: how long requests and changes are sent")
	flag.BoolVar(&s.embedded, "embedded", false, "profile scale: etcd runs in the API server, as in artifacts/install")
}

// scaleRun measures one API server with many objects.
type scaleRun struct {
	*environment
	settings scaleSettings
	profiles string
	// direct reaches the API server itself, and aggregated reaches it through the kube-apiserver.
	direct, aggregated *serving
	found              *scaleReport
}

// runScale measures, prints the tables and saves them. What was measured before an error is saved.
func runScale(ctx context.Context, s settings) (err error) {
	ctx, cancel := context.WithTimeout(ctx, scalePatience)
	defer cancel()
	found := newScaleReport(s.scale, s.variables)
	defer func() { err = errors.Join(err, found.save(s.out)) }()
	say("starting the servers, %s", strings.Join(s.variables.list(), ", "))
	e, err := startEnvironment(ctx, s.programs, installation{embedded: s.scale.embedded, variables: s.variables, withoutCRD: true})
	defer func() { err = errors.Join(err, e.stop()) }()
	if err != nil {
		return err
	}
	all, err := e.servings(ctx)
	if err != nil {
		return err
	}
	run := &scaleRun{environment: e, settings: s.scale, profiles: s.profiles, found: found}
	for _, one := range all {
		switch one.name {
		case servingDirect:
			run.direct = one
		case servingAggregated:
			run.aggregated = one
		}
	}
	for _, step := range []func(context.Context) error{run.fill, run.restart, run.lists, run.traffic, run.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return found.verdict()
}

// fill stores all objects. The API server stores a few, through requests as users and the
// controller send them. Their copies are written to etcd, which takes a minute instead of an hour.
func (r *scaleRun) fill(ctx context.Context) error {
	var err error
	if r.found.Empty, err = r.memory(ctx, "empty"); err != nil {
		return err
	}
	templates, err := r.makeTemplates(ctx)
	if err != nil {
		return fmt.Errorf("make templates: %w", err)
	}
	r.found.describe(templates)
	if err := r.makeNamespaces(ctx); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	return r.writeCopies(ctx, templates)
}

// restart ends the API server, starts it with all objects stored, and measures the start.
func (r *scaleRun) restart(ctx context.Context) error {
	say("restarting the API server")
	if err := r.processes[ownServer].Stop(syscall.SIGTERM, readyPatience); err != nil {
		return err
	}
	before, begun := r.etcdSeconds(), time.Now()
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if err := r.startServer(ctx); err != nil {
		return err
	}
	r.found.StartSeconds = time.Since(begun).Seconds()
	used, err := r.cpuSeconds()
	if err != nil {
		return err
	}
	r.found.StartCPU = map[string]float64{ownServer: used[ownServer], ownEtcd: used[ownEtcd] - before}
	peak, err := r.peakBytes()
	if err != nil {
		return err
	}
	r.found.StartPeak = peak
	say("ready after %.1f s", r.found.StartSeconds)
	r.found.Started, err = r.memory(ctx, "started")
	return err
}

// etcdSeconds is the CPU time of the etcd beside the API server; 0 if there is none.
func (r *scaleRun) etcdSeconds() float64 {
	used, err := r.cpuSeconds()
	if err != nil {
		return 0
	}
	return used[ownEtcd]
}

// lists reads all objects in each format.
func (r *scaleRun) lists(ctx context.Context) error {
	whole := func(ctx context.Context, client *http.Client, accept, at string) (int64, error) {
		return count(ctx, client, call{method: http.MethodGet, url: at, accept: accept})
	}
	for _, l := range []struct {
		name, format, query string
		read                func(ctx context.Context, client *http.Client, accept, at string) (int64, error)
	}{
		{"list", formatJSON, "", whole},
		{"list", formatProtobuf, "", whole},
		{"list, pages of 500", formatJSON, pageQuery, pages},
		{"list, pages of 500", formatTable, pageQuery, pages},
	} {
		if err := r.resetPeak(); err != nil {
			return err
		}
		w, err := r.openWindow(ctx)
		if err != nil {
			return err
		}
		size, err := l.read(ctx, r.direct.clients.admin, accepts[l.format], r.direct.resourcePath()+l.query)
		if err != nil && ctx.Err() != nil {
			return err
		}
		failed := ""
		if err != nil {
			// A list that the server ends, after its request timeout, is a result, too.
			failed = err.Error()
			say("%s, %s: %s", l.name, l.format, failed)
		}
		measured, err := w.close(nil)
		if err != nil {
			return err
		}
		peak, err := r.peakBytes()
		if err != nil {
			return err
		}
		say("%s, %s: %.1f s, %d MB", l.name, l.format, measured.Seconds, size/1_000_000)
		r.found.Lists = append(r.found.Lists, scaleList{
			Name: l.name, Format: l.format, Seconds: measured.Seconds, CPU: measured.CPU[ownServer], Bytes: size, Peak: peak, Error: failed,
		})
	}
	return nil
}

// end measures the memory after everything.
func (r *scaleRun) end(ctx context.Context) error {
	var err error
	r.found.End, err = r.memory(ctx, "end")
	return err
}

// memory collects garbage twice and returns what remains. It saves a heap profile if that is
// desired.
func (r *scaleRun) memory(ctx context.Context, moment string) (scaleMemory, error) {
	var m scaleMemory
	var err error
	if m.Heap, err = r.heapBytes(ctx, r.direct.clients, r.direct.base); err != nil {
		return m, err
	}
	if err := r.readStatus(map[string]*float64{"VmRSS:": &m.Resident, "RssAnon:": &m.Anonymous}); err != nil {
		return m, err
	}
	say("%s: live heap %.0f MiB, resident %.0f MiB", moment, m.Heap/(1<<20), m.Resident/(1<<20))
	if r.profiles == "" {
		return m, nil
	}
	profile, err := send(ctx, r.direct.clients.admin, call{method: http.MethodGet, url: r.direct.base + "/debug/pprof/heap?gc=1"})
	if err != nil {
		return m, err
	}
	if err := os.MkdirAll(r.profiles, 0o750); err != nil {
		return m, err
	}
	return m, os.WriteFile(filepath.Join(r.profiles, "scale-heap-"+moment+".pprof"), profile, 0o600)
}

// readStatus reads figures of the API server from /proc, in bytes.
func (r *scaleRun) readStatus(figures map[string]*float64) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.processes[ownServer].PID()))
	if err != nil {
		return err
	}
	for label, into := range figures {
		kilobytes, err := numberAfter(status, label)
		if err != nil {
			return err
		}
		*into = kilobytes * 1024
	}
	return nil
}

// peakBytes returns the largest resident memory since the start or the last resetPeak.
func (r *scaleRun) peakBytes() (peak float64, err error) {
	err = r.readStatus(map[string]*float64{"VmHWM:": &peak})
	return peak, err
}

// resetPeak lets the kernel forget the largest resident memory of the API server.
func (r *scaleRun) resetPeak() error {
	const forgetPeak = "5"
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.processes[ownServer].PID()), []byte(forgetPeak), 0)
}

// resourcePath is the address of all EtcdClusters at a serving.
func (s *serving) resourcePath() string {
	return s.base + "/apis/" + v1beta2.SchemeGroupVersion.String() + "/etcdclusters"
}
