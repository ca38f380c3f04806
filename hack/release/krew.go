// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// pluginName is the name in krew, which is also the command: kubectl etcd.
const pluginName = "etcd"

// errArchives means that the archives of the plugin are not those of the platforms.
var errArchives = errors.New("archives of the plugin and platforms differ")

// plugin is a manifest for krew, the manager of kubectl plugins (krew.googlecontainertools.github.com/v1alpha2).
type plugin struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   pluginMetadata `json:"metadata"`
	Spec       pluginSpec     `json:"spec"`
}

type pluginMetadata struct {
	Name string `json:"name"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Caveats          string           `json:"caveats"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector pluginSelector `json:"selector"`
	URI      string         `json:"uri"`
	Sha256   string         `json:"sha256"`
	Bin      string         `json:"bin"`
}

type pluginSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

const (
	description = `Shows the EtcdClusters of etcd-operator with what each member says now, says
what is wrong and what to do next, and operates the clusters: backups, restores,
recoveries, upgrades, defragmentation. It uses your kubeconfig and has your rights.
`
	caveats = `etcd-operator must be installed in the Kubernetes cluster; to check that, type:
  kubectl etcd check api
For shell completion type:
  kubectl etcd completion --help
`
)

func krewCommand(args []string) error {
	flags := flag.NewFlagSet("krew", flag.ContinueOnError)
	checksums, version, out := flags.String("checksums", "", ""), flags.String("version", "", ""), flags.String("out", "", "")
	download, source := flags.String("download", "", ""), flags.String("source", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *checksums == "" || *version == "" || *out == "" || *download == "" || *source == "" || flags.NArg() == 0 {
		return errUsage
	}
	// krew compares the name of the file with the name of the plugin.
	if filepath.Base(*out) != pluginName+".yaml" {
		return fmt.Errorf("%w: --out must name a file %s.yaml", errUsage, pluginName)
	}
	subjects, err := readChecksums(*checksums)
	if err != nil {
		return err
	}
	platforms, err := pluginPlatforms(subjects, *version, strings.TrimSuffix(*download, "/"), flags.Args())
	if err != nil {
		return err
	}
	manifest, err := yaml.Marshal(plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: pluginMetadata{Name: pluginName},
		Spec: pluginSpec{
			Version: *version, Homepage: *source, ShortDescription: "Show and operate etcd clusters of etcd-operator",
			Description: description, Caveats: caveats, Platforms: platforms,
		},
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", *out, err)
	}
	return os.WriteFile(*out, manifest, modeFile)
}

// pluginPlatforms returns an entry for each platform, such as linux/amd64. Each needs an archive
// with a checksum, and each archive of the plugin a platform.
func pluginPlatforms(subjects []subject, version, download string, platforms []string) ([]pluginPlatform, error) {
	prefix := "kubectl-etcd-" + version + "-"
	digests := map[string]string{}
	for _, s := range subjects {
		if strings.HasPrefix(s.Name, prefix) {
			digests[s.Name] = s.Digest["sha256"]
		}
	}
	var entries []pluginPlatform
	for _, platform := range platforms {
		system, architecture, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("%w: %q is not a platform such as linux/amd64", errUsage, platform)
		}
		archive := prefix + system + "-" + architecture + ".tar.gz"
		digest, ok := digests[archive]
		if !ok {
			return nil, fmt.Errorf("%w: no checksum for %s: build it first, or name the platform once", errArchives, archive)
		}
		delete(digests, archive)
		program := "kubectl-etcd"
		if system == "windows" {
			program += ".exe"
		}
		entries = append(entries, pluginPlatform{
			Selector: pluginSelector{map[string]string{"os": system, "arch": architecture}},
			URI:      download + "/" + archive, Sha256: digest, Bin: program,
		})
	}
	if len(digests) > 0 {
		return nil, fmt.Errorf("%w: no platform for %v: name it, or delete the archive", errArchives, slices.Sorted(maps.Keys(digests)))
	}
	return entries, nil
}
