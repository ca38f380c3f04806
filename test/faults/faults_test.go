// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// How long faults last. Core cells are short, because they run often.
const (
	holdFault     = 30 * time.Second
	holdCoreFault = 10 * time.Second
)

// What `make faults` passes on.
var (
	oneCell  = flag.String("cell", "", "run one cell: FAULT/OPERATION or FAULT/OPERATION/SIZE")
	random   = flag.Int("cells", 0, "run so many cells that the seed chooses")
	allCells = flag.Bool("all", false, "run every cell")
	coreOnly = flag.Bool("core", false, "run the core cells, which take less than two minutes")
	seed     = flag.Uint64("seed", 0, "what chooses cells, and members in them; 0 is the time")
)

// chosen returns the cells that the flags choose.
func chosen(t *testing.T, seed uint64) []Cell {
	t.Helper()
	switch {
	case *oneCell != "":
		c, err := ParseCell(*oneCell)
		if err != nil {
			t.Fatal(err)
		}
		return []Cell{c}
	case *allCells:
		return Matrix()
	case *coreOnly:
		return Core()
	default:
		return Choose(seed, *random)
	}
}

// TestFaults runs the chosen cells of the matrix on the local Kubernetes, one after the other,
// and writes a table.
func TestFaults(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().Unix())
	}
	cells := chosen(t, *seed)
	if len(cells) == 0 {
		t.Skip("no cell was chosen: run `make faults`")
	}
	env, err := harness.LoadLocal("faults")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := env.IsInstalled(); err != nil {
		t.Fatal(err)
	}
	nodes, err := env.ReadyNodes(t.Context())
	if err != nil || len(nodes) < 3 {
		t.Fatalf("the fault matrix needs three nodes that are ready, and there are %v (%v): run `make down`, then `make faults`", nodes, err)
	}
	// An interruption ends the cell, which undoes its fault.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dist := filepath.Join(env.Root, "dist")
	hold := holdFault
	if *coreOnly {
		hold = holdCoreFault
	}
	r := &Runner{Env: env, Seed: *seed, Hold: hold, Dumps: filepath.Join(dist, "faults"), Logf: t.Logf}
	t.Logf("seed %d, %d cells", *seed, len(cells))
	var results []Result
	for i, c := range cells {
		if ctx.Err() != nil {
			t.Errorf("interrupted: %d cells did not run", len(cells)-i)
			break
		}
		t.Logf("cell %d of %d: %s", i+1, len(cells), c)
		result := r.Run(ctx, c)
		t.Logf("%s", &result)
		if len(result.Problems) > 0 {
			t.Fail()
		}
		results = append(results, result)
		// After each cell, so that a run that is cut off leaves its results.
		write(t, filepath.Join(dist, "faults.md"), results)
	}
	t.Log(summary(results))
}

func write(t *testing.T, name string, results []Result) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := WriteTable(file, *seed, results); err != nil {
		t.Error(err)
	}
}

// TestEachNameHasAnImplementation: no fault or operation of the matrix is only a name.
func TestEachNameHasAnImplementation(t *testing.T) {
	for _, name := range Faults {
		if f, found := faults[name]; !found || f.begin == nil || f.gapLimit == 0 {
			t.Errorf("fault %s has no implementation", name)
		}
	}
	for _, name := range Operations {
		if _, found := operations[name]; !found {
			t.Errorf("operation %s has no implementation", name)
		}
	}
	if len(faults) != len(Faults) || len(operations) != len(Operations) {
		t.Errorf("%d of %d faults and %d of %d operations are in the matrix", len(Faults), len(faults), len(Operations), len(operations))
	}
}
