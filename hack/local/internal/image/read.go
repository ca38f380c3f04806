// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

const manifestName = "manifest.json"

// maxSmall bounds the manifest and the configurations, which are kept in memory.
const maxSmall = 4 << 20

// Info names one image of an archive.
type Info struct {
	Refs []string // in their complete form
	// ID is the digest of the image's configuration, which is its identity to
	// Kubernetes: it covers the layers.
	ID string
}

// Inspect returns the images that an archive holds.
func Inspect(file string) ([]Info, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	infos, err := inspect(in)
	if err != nil {
		return nil, fmt.Errorf("reading the image archive %s: %w", file, err)
	}
	return infos, nil
}

func inspect(in io.Reader) ([]Info, error) {
	archive := tar.NewReader(in)
	var manifest []manifestEntry
	ids := map[string]string{} // of every small file: any may turn out to be a configuration
	for !isComplete(manifest, ids) {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no complete %s in it: is this an archive that docker save or the image command wrote?", manifestName)
		}
		if err != nil {
			return nil, err
		}
		if entry.Typeflag != tar.TypeReg || entry.Size > maxSmall {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		if entry.Name == manifestName {
			if err := json.Unmarshal(data, &manifest); err != nil {
				return nil, fmt.Errorf("%s: %w", manifestName, err)
			}
			continue
		}
		sum := sha256.Sum256(data)
		ids[entry.Name] = "sha256:" + hex.EncodeToString(sum[:])
	}
	var infos []Info
	for _, entry := range manifest {
		info := Info{ID: ids[entry.Config]}
		for _, ref := range entry.RepoTags {
			info.Refs = append(info.Refs, Normalize(ref))
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func isComplete(manifest []manifestEntry, ids map[string]string) bool {
	for _, entry := range manifest {
		if ids[entry.Config] == "" {
			return false
		}
	}
	return len(manifest) > 0
}
