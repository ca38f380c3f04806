// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Directories of a bundle, which labels of its image name, too.
const (
	manifestsDir = "manifests/"
	metadataDir  = "metadata/"
)

const (
	modeDir  = 0o755
	modeFile = 0o644
)

// encode returns the files of a bundle by their paths.
func encode(csv *v1alpha1.ClusterServiceVersion, manifests []*unstructured.Unstructured, v semver.Version) (map[string][]byte, error) {
	metadata := annotations(v)
	text, err := yaml.Marshal(map[string]any{"annotations": metadata})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		metadataDir + "annotations.yaml": text,
		"bundle.Dockerfile":              dockerfile(metadata),
	}
	if files[manifestsDir+packageName+".clusterserviceversion.yaml"], err = encodeCSV(csv); err != nil {
		return nil, err
	}
	for _, object := range manifests {
		name := manifestsDir + fileName(object)
		if files[name] != nil {
			return nil, fmt.Errorf("two objects have the file %s", name)
		}
		if files[name], err = yaml.Marshal(object.Object); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// encodeCSV leaves out the status, which the type has even if it is empty.
func encodeCSV(csv *v1alpha1.ClusterServiceVersion) ([]byte, error) {
	data, err := json.Marshal(csv)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	return yaml.Marshal(object)
}

// fileName has only characters that keys of ConfigMaps have, because OLM unpacks bundles into ConfigMaps.
func fileName(object *unstructured.Unstructured) string {
	version := strings.ReplaceAll(object.GetAPIVersion(), "/", "_")
	return strings.ReplaceAll(object.GetName(), ":", "-") + "_" + version + "_" + strings.ToLower(object.GetKind()) + ".yaml"
}

// annotations describe a bundle. Releases before the final one are in a channel of their own.
func annotations(v semver.Version) map[string]string {
	channel := "stable"
	if len(v.Pre) > 0 {
		channel = "preview"
	}
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       manifestsDir,
		prefix + "metadata.v1":        metadataDir,
		prefix + "package.v1":         packageName,
		prefix + "channels.v1":        channel,
		prefix + "channel.default.v1": channel,
	}
}

// dockerfile builds the image of the bundle, with the annotations as labels.
func dockerfile(annotations map[string]string) []byte {
	var text strings.Builder
	text.WriteString("FROM scratch\n")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", key, annotations[key])
	}
	for _, dir := range []string{manifestsDir, metadataDir} {
		fmt.Fprintf(&text, "COPY %s /%s\n", dir, dir)
	}
	return []byte(text.String())
}

// write writes the files into a directory, which it empties first.
func write(directory string, files map[string][]byte) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), modeDir); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, modeFile); err != nil {
			return err
		}
	}
	return nil
}
