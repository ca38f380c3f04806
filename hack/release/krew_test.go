// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const testVersion = "v1.2.3"

// releasedPlatforms returns the platforms for which hack/release.sh builds the plugin.
func releasedPlatforms(t *testing.T) []string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^plugins=\((.*)\)$`).FindSubmatch(read(t, filepath.Join("..", "release.sh")))
	if match == nil {
		t.Fatal("hack/release.sh names no platforms")
	}
	return strings.Fields(string(match[1]))
}

// writePluginArchives writes an archive for each platform and the checksums of them all.
func writePluginArchives(t *testing.T, dir string, platforms []string) (checksums string) {
	t.Helper()
	var lines strings.Builder
	for _, platform := range platforms {
		program := "kubectl-etcd"
		if strings.HasPrefix(platform, "windows/") {
			program += ".exe"
		}
		var content bytes.Buffer
		zipped := gzip.NewWriter(&content)
		a := archive{tar.NewWriter(zipped)}
		for name, mode := range map[string]int64{program: modeProgram, "LICENSE": modeFile} {
			if err := a.add(name, tar.TypeReg, mode, []byte(name+" for "+platform)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(a.Close(), zipped.Close()); err != nil {
			t.Fatal(err)
		}
		name := "kubectl-etcd-" + testVersion + "-" + strings.ReplaceAll(platform, "/", "-") + ".tar.gz"
		write(t, filepath.Join(dir, name), content.String(), 0o600)
		sum := sha256.Sum256(content.Bytes())
		lines.WriteString(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	return write(t, filepath.Join(dir, "SHA256SUMS"), lines.String(), 0o600)
}

func writePlugin(checksums, out string, platforms ...string) error {
	return run(append([]string{
		"krew", "--checksums", checksums, "--version", testVersion, "--download", "https://example.com/" + testVersion,
		"--source", "https://example.com", "--out", out,
	}, platforms...))
}

// TestPluginInstallsWithKrew has krew's own validator and krew itself judge a manifest for the
// platforms of hack/release.sh, and manifests with a fault.
func TestPluginInstallsWithKrew(t *testing.T) {
	dir := t.TempDir()
	platforms := releasedPlatforms(t)
	manifest := filepath.Join(dir, "etcd.yaml")
	if err := writePlugin(writePluginArchives(t, dir, platforms), manifest, platforms...); err != nil {
		t.Fatal(err)
	}
	good := read(t, manifest)
	change := func(edit func(*plugin)) []byte {
		p := &plugin{}
		if err := yaml.UnmarshalStrict(good, p); err != nil {
			t.Fatal(err)
		}
		edit(p)
		changed, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	for _, test := range []struct {
		name     string
		manifest []byte
		message  string // empty: valid
	}{
		{"as built", good, ""},
		{"checksum of another archive", change(func(p *plugin) { p.Spec.Platforms[0].Sha256 = p.Spec.Platforms[1].Sha256 }), "checksum does not match"},
		{"platform missing", change(func(p *plugin) { p.Spec.Platforms = p.Spec.Platforms[1:] }), "these were built"},
		{"platform for another architecture", change(func(p *plugin) { p.Spec.Platforms[0].Selector.MatchLabels["arch"] = "386" }), "does not offer installation for this platform"},
		{"another program", change(func(p *plugin) { p.Spec.Platforms[0].Bin = "kubectl" }), "cannot install the plugin"},
		{"two entries for one platform", change(func(p *plugin) { p.Spec.Platforms[0].Selector = p.Spec.Platforms[1].Selector }), "overlapping"},
		{"version without v", change(func(p *plugin) { p.Spec.Version = "1.2.3" }), "failed to parse plugin version"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "etcd.yaml"), string(test.manifest), 0o600)
			command := exec.CommandContext(t.Context(), "bash", append([]string{"verify-plugin.sh", file, dir}, platforms...)...)
			output, err := command.CombinedOutput()
			if test.message == "" && err != nil || test.message != "" && (err == nil || !strings.Contains(string(output), test.message)) {
				t.Errorf("%v, want an error with %q:\n%s", err, test.message, output)
			}
		})
	}
}

func TestPluginNeedsArchives(t *testing.T) {
	dir := t.TempDir()
	platforms := []string{"linux/amd64", "windows/amd64"}
	checksums, out := writePluginArchives(t, dir, platforms), filepath.Join(dir, "etcd.yaml")
	for name, test := range map[string]struct {
		out       string
		platforms []string
		want      error
	}{
		"platform without archive":   {out, append(platforms, "linux/arm64"), errArchives},
		"platform twice":             {out, append(platforms, "linux/amd64"), errArchives},
		"archive without platform":   {out, platforms[:1], errArchives},
		"no platform":                {out, nil, errUsage},
		"platform without a slash":   {out, []string{"linux"}, errUsage},
		"file name of other plugins": {filepath.Join(dir, "other.yaml"), platforms, errUsage},
	} {
		if err := writePlugin(checksums, test.out, test.platforms...); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if _, err := os.Stat(test.out); err == nil {
			t.Errorf("%s: the manifest was written", name)
		}
	}
	if err := writePlugin(checksums, out, platforms...); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"uri: https://example.com/v1.2.3/kubectl-etcd-v1.2.3-linux-amd64.tar.gz\n",
		"uri: https://example.com/v1.2.3/kubectl-etcd-v1.2.3-windows-amd64.tar.gz\n",
		"bin: kubectl-etcd.exe\n",
	} {
		if !strings.Contains(string(read(t, out)), line) {
			t.Errorf("no %q in\n%s", line, read(t, out))
		}
	}
}
