// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

const archiveManifest = "manifest.json"

// LoadAs loads the one image of an archive into the nodes under another reference, such as
// "quay.io/etcd-operator/etcd-operator:other". dir holds the changed archive.
func (e *Environment) LoadAs(ctx context.Context, archive, ref, dir string) error {
	changed, err := os.CreateTemp(dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(changed.Name()) }() // dir is removed with it
	if err := errors.Join(retag(archive, changed, ref), changed.Close()); err != nil {
		return fmt.Errorf("write %s with the reference %s: %w", archive, ref, err)
	}
	_, err = e.LocalTool(ctx, "load", changed.Name())
	return err
}

// retag copies an archive of one image and replaces its references.
func retag(archive string, out io.Writer, ref string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	to := tar.NewWriter(out)
	for from := tar.NewReader(file); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return to.Close()
		}
		if err != nil {
			return err
		}
		var content io.Reader = from
		if header.Name == archiveManifest {
			manifest, err := retagged(from, ref)
			if err != nil {
				return err
			}
			header.Size, content = int64(len(manifest)), bytes.NewReader(manifest)
		}
		if err := to.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(to, content); err != nil {
			return err
		}
	}
}

func retagged(manifest io.Reader, ref string) ([]byte, error) {
	var images []map[string]any
	if err := json.NewDecoder(manifest).Decode(&images); err != nil {
		return nil, err
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("%s lists %d images, want 1", archiveManifest, len(images))
	}
	images[0]["RepoTags"] = []string{ref}
	return json.Marshal(images)
}
