// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user that containers run as; it has no name that a program needs.
const user = "65532"

// annotationRef is where an OCI archive keeps the reference of an image
// (image-spec, annotations.md).
const annotationRef = "org.opencontainers.image.ref.name"

// epoch is the time of everything in an archive, so that it depends on nothing but its files.
var epoch = time.Unix(0, 0).UTC()

// platformDir is a directory with the programs of a platform.
type platformDir struct {
	platform v1.Platform
	dir      string
}

func imageCommand(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	ref := flags.String("ref", "", "")
	out := flags.String("out", "", "")
	entrypoint := flags.String("entrypoint", "", "")
	license := flags.String("license", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *ref == "" || *out == "" || *entrypoint == "" || *license == "" || flags.NArg() == 0 {
		return errUsage
	}
	tag, err := name.NewTag(*ref, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("--ref: %w", err)
	}
	var dirs []platformDir
	for _, arg := range flags.Args() {
		text, dir, ok := strings.Cut(arg, "=")
		platform, err := v1.ParsePlatform(text)
		if !ok || err != nil {
			return fmt.Errorf("%w: %q is not PLATFORM=DIRECTORY, such as linux/arm64=bin", errUsage, arg)
		}
		dirs = append(dirs, platformDir{*platform, dir})
	}
	digest, err := writeIndex(tag, *entrypoint, *license, dirs, *out)
	if err != nil {
		return fmt.Errorf("write the image %s: %w", tag, err)
	}
	fmt.Printf("%s@%s\n", tag.Context(), digest)
	return nil
}

// writeIndex writes the archive and returns the digest of the index.
func writeIndex(tag name.Tag, entrypoint, license string, dirs []platformDir, file string) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, d := range dirs {
		image, err := imageOf(d, entrypoint, license)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("for %s: %w", d.platform, err)
		}
		platform := d.platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationRef: tag.Name()})); err != nil {
		return v1.Hash{}, err
	}
	return digest, writeArchive(dir, file)
}

// imageOf returns the image with the programs of a directory in /.
func imageOf(d platformDir, entrypoint, license string) (v1.Image, error) {
	content, err := layerOf(d.dir, license)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: d.platform.OS, Architecture: d.platform.Architecture, Variant: d.platform.Variant,
		Created: v1.Time{Time: epoch},
		Config: v1.Config{
			User: user, Entrypoint: []string{entrypoint},
			Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: epoch}}})
}
