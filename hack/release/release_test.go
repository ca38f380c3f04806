// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func write(t *testing.T, file, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestImage(t *testing.T) {
	dir := t.TempDir()
	license := write(t, filepath.Join(dir, "LICENSE"), "text", 0o600)
	for _, arch := range []string{"amd64", "arm64"} {
		write(t, filepath.Join(dir, arch, "controller"), "controller for "+arch, 0o700)
		write(t, filepath.Join(dir, arch, "agent"), "agent for "+arch, 0o700)
	}
	make := func(name string) string {
		out := filepath.Join(dir, name)
		err := run([]string{
			"image", "--ref", "example.com/a/b:v1.2.3", "--out", out, "--entrypoint", "/controller", "--license", license,
			"linux/amd64=" + filepath.Join(dir, "amd64"), "linux/arm64=" + filepath.Join(dir, "arm64"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := make("first.tar")
	if err := os.Chtimes(filepath.Join(dir, "arm64", "agent"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, first), read(t, make("second.tar"))) {
		t.Error("the same files gave another archive")
	}

	images := unpack(t, first)
	for _, arch := range []string{"amd64", "arm64"} {
		image := images[arch]
		if image == nil {
			t.Fatalf("no image for %s in %v", arch, images)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{"/controller"}) {
			t.Errorf("%s: %+v, %v", arch, config, err)
		}
		files := contents(t, image)
		if files["controller"] != "controller for "+arch || files["agent"] != "agent for "+arch || files["LICENSE"] != "text" {
			t.Errorf("%s holds %v", arch, files)
		}
	}
}

// unpack returns the images of an OCI archive by architecture.
func unpack(t *testing.T, file string) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	if err := readArchive(file, dir); err != nil {
		t.Fatal(err)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[annotationRef] != "example.com/a/b:v1.2.3" {
		t.Fatalf("the archive names %+v, %v", manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, d := range platforms.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[d.Platform.Architecture] = image
	}
	return images
}

func contents(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	layers := mutate.Extract(image)
	defer func() { _ = layers.Close() }()
	files := map[string]string{}
	for archive := tar.NewReader(layers); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, readErr := io.ReadAll(archive)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		files[entry.Name] = string(content)
	}
}

func TestImageWithoutPrograms(t *testing.T) {
	license := write(t, filepath.Join(t.TempDir(), "LICENSE"), "text", 0o600)
	err := run([]string{"image", "--ref", "example.com/a:v1", "--out", filepath.Join(t.TempDir(), "out"), "--entrypoint", "/a", "--license", license, "linux/amd64=" + t.TempDir()})
	if err == nil {
		t.Error("an image without programs was written")
	}
}

func TestStatement(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) { testStatement(t, kind) })
	}
}

func testStatement(t *testing.T, kind string) {
	t.Helper()
	dir := t.TempDir()
	private, public := keys(t, kind)
	_, other := keys(t, kind)
	file := write(t, filepath.Join(dir, "install.yaml"), "kind: Namespace", 0o600)
	sum := sha256.Sum256(read(t, file))
	line := hex.EncodeToString(sum[:]) + "  install.yaml\n"
	sums, signed := write(t, filepath.Join(dir, "SHA256SUMS"), line, 0o600), filepath.Join(dir, "statement.json")
	if err := run([]string{"statement", "--checksums", sums, "--key", private, "--out", signed, "--source", "https://example.com/a", "--commit", "c0ffee", "--version", "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	verify := func(key string) error {
		return run([]string{"verify", "--checksums", sums, "--key", key, "--statement", signed})
	}
	if err := verify(public); err != nil {
		t.Error(err)
	}
	if err := verify(other); err == nil {
		t.Error("the statement of another key was accepted")
	}
	write(t, file, "kind: Secret", 0o600)
	if err := verify(public); !errors.Is(err, errMismatch) {
		t.Errorf("a changed file: %v", err)
	}
	write(t, file, "kind: Namespace", 0o600)
	write(t, sums, line+hex.EncodeToString(sum[:])+"  more.yaml\n", 0o600)
	if err := verify(public); !errors.Is(err, errMismatch) {
		t.Errorf("another list: %v", err)
	}
	write(t, sums, line, 0o600)
	write(t, signed, string(bytes.Replace(read(t, signed), []byte(`"sig":"`), []byte(`"sig":"AAAA`), 1)), 0o600)
	if err := verify(public); err == nil {
		t.Error("a changed signature was accepted")
	}
}

func TestChecksums(t *testing.T) {
	for name, content := range map[string]string{
		"empty":            "",
		"no digest":        "install.yaml\n",
		"short":            "abcd  install.yaml\n",
		"outside":          hex.EncodeToString(make([]byte, sha256.Size)) + "  ../install.yaml\n",
		"an absolute path": hex.EncodeToString(make([]byte, sha256.Size)) + "  /install.yaml\n",
	} {
		if subjects, err := readChecksums(write(t, filepath.Join(t.TempDir(), "sums"), content, 0o600)); err == nil {
			t.Errorf("%s: accepted as %v", name, subjects)
		}
	}
}
