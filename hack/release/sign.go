// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// The form in which cosign stores the signature of an image (cosign, specs/SIGNATURE_SPEC.md).
const (
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signatureLayer      = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
)

// errArchive means that an OCI archive does not hold one image index with a tag.
var errArchive = errors.New("not an archive of this program: make it again")

func signCommand(args []string) error {
	flags := flag.NewFlagSet("sign", flag.ContinueOnError)
	image, out, key := flags.String("image", "", ""), flags.String("out", "", ""), flags.String("key", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *image == "" || *out == "" || *key == "" {
		return errUsage
	}
	private, err := readPrivateKey(*key)
	if err != nil {
		return err
	}
	if err := signImages(*image, *out, private); err != nil {
		return fmt.Errorf("sign the images of %s: %w", *image, err)
	}
	for _, file := range flags.Args() {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := signBase64(content, private)
		if err != nil {
			return fmt.Errorf("sign %s: %w", file, err)
		}
		if err := os.WriteFile(file+".sig", []byte(text+"\n"), modeFile); err != nil {
			return err
		}
	}
	return nil
}

// signBase64 returns the signature of a message as cosign writes it.
func signBase64(message []byte, private signature.Signer) (string, error) {
	raw, err := private.SignMessage(bytes.NewReader(message))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// signImages writes an archive with signatures of the image index in another archive and of each image in it.
// Container runtimes look for a signature of the image of their platform.
func signImages(file, out string, private signature.Signer) error {
	dir, err := os.MkdirTemp("", "signatures")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tag, digests, err := imagesOf(file)
	if err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, digest := range digests {
		image, err := signatureOf(tag, digest, private)
		if err != nil {
			return err
		}
		// cosign derives the tag from the digest.
		place := tag.Context().Tag(strings.ReplaceAll(digest.String(), ":", "-") + ".sig").Name()
		if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{annotationRef: place})); err != nil {
			return err
		}
		fmt.Println(place)
	}
	return writeArchive(dir, out)
}

// imagesOf returns the tag of the image index in an archive, the digest of the index, and those of its images.
func imagesOf(file string) (name.Tag, []v1.Hash, error) {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return name.Tag{}, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := readArchive(file, dir); err != nil {
		return name.Tag{}, nil, err
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return name.Tag{}, nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return name.Tag{}, nil, err
	}
	if len(manifest.Manifests) != 1 {
		return name.Tag{}, nil, errArchive
	}
	descriptor := manifest.Manifests[0]
	tag, err := name.NewTag(descriptor.Annotations[annotationRef], name.StrictValidation)
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("%w: %w", errArchive, err)
	}
	index, err := outer.ImageIndex(descriptor.Digest)
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("%w: %w", errArchive, err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		return name.Tag{}, nil, err
	}
	digests := []v1.Hash{descriptor.Digest}
	for _, image := range images.Manifests {
		digests = append(digests, image.Digest)
	}
	return tag, digests, nil
}

// signatureOf returns what cosign reads beside an image. It is an OCI image with one layer, which names the digest
// that the key has signed and its reference. An annotation has the signature of that layer.
func signatureOf(tag name.Tag, digest v1.Hash, private signature.Signer) (v1.Image, error) {
	message, err := json.Marshal(payload.Cosign{Image: tag.Context().Digest(digest.String()), ClaimedIdentity: tag.Name()})
	if err != nil {
		return nil, err
	}
	text, err := signBase64(message, private)
	if err != nil {
		return nil, err
	}
	return mutate.Append(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: static.NewLayer(message, signatureLayer), Annotations: map[string]string{signatureAnnotation: text}},
	)
}
