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
	root := flag.String("root", ".", "directory of the module")
	out := flag.String("out", "docs/reference", "directory to write the pages to")
	checkOnly := flag.Bool("check", false, "check the pages that are named as arguments, and write nothing")
	flag.Parse()
	var err error
	if *checkOnly {
		err = check(*root, flag.Args())
	} else {
		err = run(*root, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run writes every page.
func run(root, out string) error {
	src, err := load(root, "pkg", "cmd")
	if err != nil {
		return err
	}
	found := src.find()
	pages := map[string]string{
		"api.md":         src.apiPage(),
		"conditions.md":  src.conditionsPage(found),
		"events.md":      src.eventsPage(found),
		"annotations.md": src.annotationsPage(),
		"waits.md":       waitsPage(),
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
