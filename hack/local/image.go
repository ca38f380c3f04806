// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
)

// writeImage makes an image from the files given on the command line.
func writeImage(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	ref := flags.String("ref", "", "reference, such as example.com/name:tag")
	out := flags.String("out", "", "archive to write")
	entrypoint := flags.String("entrypoint", "", `entrypoint, as a JSON array such as ["/program"]`)
	user := flags.String("user", "", "user that containers run as")
	if err := flags.Parse(args); err != nil || *ref == "" || *out == "" || flags.NArg() == 0 {
		return errUsage
	}
	spec := image.Spec{Ref: image.Normalize(*ref), User: *user, Files: image.Base()}
	if *entrypoint != "" {
		if err := json.Unmarshal([]byte(*entrypoint), &spec.Entrypoint); err != nil {
			return fmt.Errorf("--entrypoint %s is not a JSON array of strings: %w", *entrypoint, err)
		}
	}
	for _, arg := range flags.Args() {
		source, dest, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not SOURCE=DEST", arg)
		}
		spec.Files = append(spec.Files, image.File{Source: source, Dest: dest})
	}
	return image.Write(spec, *out)
}
