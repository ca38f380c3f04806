// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	pinnedName   = "quay.io/etcd-operator/etcd-operator"
	pinnedDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// manifests copies the manifests and charts of the work tree, and returns the directory and the tag that they name.
func manifests(t *testing.T) (dir, tag string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"artifacts", "charts"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("..", "..", name))); err != nil {
			t.Fatal(err)
		}
	}
	return dir, kustomizationOf(t, dir).Images[0].NewTag
}

type kustomization struct {
	Images []struct{ Name, NewName, NewTag, Digest string } `json:"images"`
}

func kustomizationOf(t *testing.T, dir string) kustomization {
	t.Helper()
	var k kustomization
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "artifacts", "install", "kustomization.yaml")), &k); err != nil || len(k.Images) != 1 {
		t.Fatalf("%+v, %v", k, err)
	}
	return k
}

// TestPin names the image by its digest in a copy of all manifests, as hack/release.sh does.
func TestPin(t *testing.T) {
	dir, tag := manifests(t)
	bash(t, dir, "pin . "+pinnedName+":"+tag+" "+pinnedDigest)
	if got := kustomizationOf(t, dir).Images[0]; got.Name != pinnedName || got.NewName != pinnedName || got.NewTag != tag || got.Digest != pinnedDigest {
		t.Errorf("the kustomization names %+v", got)
	}
	found := 0
	line := regexp.MustCompile(`(?m)^ *(?:- )?image: (` + regexp.QuoteMeta(pinnedName) + `.*)$`)
	err := filepath.WalkDir(filepath.Join(dir, "artifacts"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		for _, match := range line.FindAllStringSubmatch(string(read(t, path)), -1) {
			found++
			if match[1] != pinnedName+":"+tag+"@"+pinnedDigest {
				t.Errorf("%s names %s", path, match[1])
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d manifests name the image, %v", found, err)
	}
	var chart struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "charts", "etcd-operator", "Chart.yaml")), &chart); err != nil ||
		chart.Annotations["etcd.database.coreos.com/image-digest"] != pinnedDigest || chart.Annotations["artifacthub.io/license"] == "" {
		t.Errorf("the chart has the annotations %v, %v", chart.Annotations, err)
	}
}

// TestPinRejects has a manifest that names another image than the release.
func TestPinRejects(t *testing.T) {
	dir, tag := manifests(t)
	write(t, filepath.Join(dir, "artifacts", "other.yaml"), "image: "+pinnedName+":v0.0.1\n", 0o600)
	script := "source build.sh; pin '" + dir + "' " + pinnedName + ":" + tag + " " + pinnedDigest
	output, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "v0.0.1") {
		t.Errorf("a manifest with another tag: %v\n%s", err, output)
	}
}
