// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "artifacts/monitoring/dashboards", "directory for the dashboards")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func dashboards() []dashboard { return []dashboard{fleet(), cluster(), operator()} }

func write(dir string) error {
	for _, d := range dashboards() {
		text, err := d.json()
		if err != nil {
			return fmt.Errorf("dashboard %s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, d.name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
