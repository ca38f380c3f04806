// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

var (
	sweepSeed = flag.Uint64("sweep-seed", 1, "the seed of the delays in the crash sweep")
	// sweepEvery leaves cuts out: all are made before a release, some at every change.
	sweepEvery = flag.Int("sweep-every", 4, "make every n-th cut only")
	thorough   = flag.Bool("thorough", false, "cut every call in every way, which takes three times as long")
)

// TestCrashSweep plays each phase of a cluster's life once, and then once for every
// call that the controller made and every way in which it can be cut there. Whatever
// was cut, the cluster must come to what is declared, with all its data.
func TestCrashSweep(t *testing.T) {
	stride := *sweepEvery
	if testing.Short() || raceEnabled {
		stride = max(stride, 23)
	}
	calls, replays, start := 0, 0, time.Now()
	for _, p := range phases() {
		t.Run(p.name, func(t *testing.T) {
			p.plan.Seed = *sweepSeed
			n, played := cutEveryCall(t, &p, stride)
			calls += n
			replays += played
		})
	}
	t.Logf("%d call sites swept, %d replays, %v", calls, replays, time.Since(start).Round(10*time.Millisecond))
}

// cutEveryCall makes every stride-th cut of a phase and returns how many calls there are and
// how often the phase was played.
func cutEveryCall(t *testing.T, p *phase, stride int) (calls, played int) {
	start := time.Now()
	whole := p.play(nil, false)
	if whole.violation != nil {
		t.Fatalf("without a cut: %v\n%s", whole.violation, tail(p.play(nil, true).trace))
	}
	cuts := cutsOf(whole.sites, stride)
	var broken []cut
	var mu sync.Mutex
	queue := make(chan cut)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for at := range queue {
				if p.play(&at, false).violation == nil {
					continue
				}
				mu.Lock()
				broken = append(broken, at)
				mu.Unlock()
			}
		})
	}
	for _, at := range cuts {
		queue <- at
	}
	close(queue)
	workers.Wait()
	kinds := map[string]bool{}
	for _, s := range whole.sites {
		verb, _, _ := strings.Cut(s.name, " "+schedules.ClusterName+"-")
		kinds[verb] = true
	}
	t.Logf("%d calls of %d kinds, %d cuts, %d violations, %v",
		len(whole.sites), len(kinds), len(cuts), len(broken), time.Since(start).Round(time.Millisecond))
	for i, at := range broken {
		if i == 3 {
			t.Errorf("and %d more", len(broken)-i)
			break
		}
		again := p.play(&at, true)
		t.Errorf("call %d, %s, %s: %v\n%s", at.at, whole.sites[at.at].name, at.how.name, again.violation, tail(again.trace))
	}
	return len(whole.sites), len(cuts)
}

// cutsOf lists what can be cut.
func cutsOf(sites []site, stride int) []cut {
	var cuts []cut
	for i := range sites {
		for j := range endings {
			if (i+j)%stride == 0 && (sites[i].write || endings[j].reads) && (*thorough || !endings[j].rare) {
				cuts = append(cuts, cut{at: i, how: &endings[j]})
			}
		}
	}
	return cuts
}

func tail(trace []string) string {
	const lines = 60
	if len(trace) > lines {
		trace = append([]string{fmt.Sprintf("(%d lines before)", len(trace)-lines)}, trace[len(trace)-lines:]...)
	}
	return strings.Join(trace, "\n")
}
