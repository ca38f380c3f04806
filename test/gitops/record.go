// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Pair is a manifest and the object that the API server returns for it, for Argo CD's own comparison in test/argocd.
type Pair struct {
	Manifest map[string]any `json:"manifest"`
	Live     map[string]any `json:"live"`
	// Differences are the paths of the values that read back as others.
	Differences []string `json:"differences,omitempty"`
}

// These stand in records for values that differ between runs.
const (
	recordedNamespace = "default"
	recordedTime      = "2026-01-01T00:00:00Z"
	recordedPhase     = "Running"
)

// Stable returns the pair without values that differ between runs. namespace is that of the object.
func (p Pair) Stable(namespace string) (Pair, error) {
	if metadata, ok := p.Live["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		metadata["uid"], metadata["resourceVersion"], metadata["creationTimestamp"] = "uid", "1", recordedTime
	}
	// No tool compares the status, and its texts change.
	p.Live["status"] = map[string]any{"phase": recordedPhase}
	data, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	var stable Pair
	err = json.Unmarshal(bytes.ReplaceAll(data, []byte(namespace), []byte(recordedNamespace)), &stable)
	return stable, err
}

// Record writes pairs to a file, or returns an error if the file has others. command says how to write it.
func Record(file string, pairs []Pair, update bool, command string) error {
	data, err := json.MarshalIndent(pairs, "", " ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o600)
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: record it with %s", err, command)
	}
	if !bytes.Equal(recorded, data) {
		return fmt.Errorf("%s is not what the API server returns today: record it again with %s, and look at the difference", file, command)
	}
	return nil
}
