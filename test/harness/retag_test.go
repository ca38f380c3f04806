// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestRetag(t *testing.T) {
	t.Parallel()
	const layer = "the content of a layer"
	for manifest, want := range map[string]string{
		`[{"Config":"c.json","RepoTags":["example.com/a:1"],"Layers":["l/layer.tar"]}]`: `[{"Config":"c.json","Layers":["l/layer.tar"],"RepoTags":["example.com/a:2"]}]`,
		`[{},{}]`: "",
	} {
		var before bytes.Buffer
		writer := tar.NewWriter(&before)
		for name, content := range map[string]string{archiveManifest: manifest, "l/layer.tar": layer} {
			if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
				t.Fatal(err)
			}
			if _, err := writer.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		archive, changed := filepath.Join(t.TempDir(), "before.tar"), filepath.Join(t.TempDir(), "after.tar")
		if err := os.WriteFile(archive, before.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var after bytes.Buffer
		if err := retag(archive, &after, "example.com/a:2"); (err != nil) != (want == "") {
			t.Errorf("%s: error %v", manifest, err)
		}
		if want == "" {
			continue
		}
		if err := os.WriteFile(changed, after.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := readTar(changed)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(files[archiveManifest]); got != want || string(files["l/layer.tar"]) != layer {
			t.Errorf("manifest %s, want %s; layer %q", got, want, files["l/layer.tar"])
		}
	}
}
