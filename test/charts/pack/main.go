// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pack writes the archives of charts into a directory: pack DIRECTORY CHART...
package main

import (
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	const least = 2
	if len(args) < least {
		return errors.New("arguments are missing: name a directory and the charts to pack into it")
	}
	for _, dir := range args[1:] {
		chart, err := loader.LoadDir(dir)
		if err != nil {
			return fmt.Errorf("load chart %s: %w", dir, err)
		}
		archive, err := util.Save(chart, args[0])
		if err != nil {
			return fmt.Errorf("pack chart %s: %w", dir, err)
		}
		fmt.Println(archive)
	}
	return nil
}
