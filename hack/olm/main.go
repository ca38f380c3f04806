// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

const usage = `Usage:
  olm --root DIRECTORY --version VERSION --image REFERENCE --created TIME --out DIRECTORY ARCHITECTURE...
      writes a bundle for the Operator Lifecycle Manager; DIRECTORY of --root is the repository, REFERENCE the image of
      the programs, TIME such as 2026-11-30T07:00:00Z, and each ARCHITECTURE one that the image is built for
`

// errUsage means that the arguments do not fit.
var errUsage = errors.New("unexpected arguments")

// release is what the repository does not say about a release.
type release struct {
	version       semver.Version
	image         string
	created       time.Time
	architectures []string
}

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, errUsage) || errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(os.Stderr, usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("olm", flag.ContinueOnError)
	root, out := flags.String("root", "", ""), flags.String("out", "", "")
	version, image, created := flags.String("version", "", ""), flags.String("image", "", ""), flags.String("created", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *root == "" || *out == "" || *image == "" || flags.NArg() == 0 {
		return errUsage
	}
	r := release{image: *image, architectures: flags.Args()}
	var err error
	if r.version, err = semver.Parse(strings.TrimPrefix(*version, "v")); err != nil {
		return fmt.Errorf("%w: --version: %w", errUsage, err)
	}
	if r.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return fmt.Errorf("%w: --created: %w", errUsage, err)
	}
	files, err := bundle(*root, r)
	if err != nil {
		return err
	}
	return write(*out, files)
}

// bundle returns the files of the bundle by their paths.
func bundle(root string, r release) (map[string][]byte, error) {
	installed, err := read(filepath.Join(root, "hack", "olm"))
	if err != nil {
		return nil, err
	}
	chart, err := readChart(filepath.Join(root, "charts", "etcd-operator"))
	if err != nil {
		return nil, err
	}
	examples, err := readExamples(filepath.Join(root, "artifacts", "examples"))
	if err != nil {
		return nil, err
	}
	csv, err := clusterServiceVersion(installed, chart, examples, r)
	if err != nil {
		return nil, err
	}
	return encode(csv, installed.manifests, r.version)
}
