// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
)

// File is a run and its series.
type File struct {
	Run panels.Run `json:"run"`
	// Start is the time of the first sample of each series.
	Start time.Time `json:"start"`
	// Step is the time between two samples.
	Step duration `json:"step"`
	// Series are lines of name, labels and values.
	Series []string `json:"-"`
}

// duration is a time.Duration that reads as 5s.
type duration struct{ time.Duration }

func (d duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// separator is between what describes the run and the series.
const separator = "---\n"

const header = `# Series of a run on a real Kubernetes. TestDashboards in test/e2e writes this file with -update.
`

// Write writes the file. Each series is a line.
func (f File) Write(path string) error {
	head, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	text := bytes.NewBufferString(header)
	text.Write(head)
	text.WriteString(separator)
	for _, series := range f.Series {
		text.WriteString(series + "\n")
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// Read reads a file that Write wrote.
func Read(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	head, series, found := bytes.Cut(text, []byte("\n"+separator))
	if !found {
		return f, fmt.Errorf("read %s: %w: it has no line %q", path, errFormat, separator)
	}
	if err := yaml.UnmarshalStrict(head, &f); err != nil {
		return f, fmt.Errorf("read %s: %w", path, err)
	}
	for line := range bytes.Lines(series) {
		f.Series = append(f.Series, string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	return f, nil
}
