// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// Formats of the flag --output.
const (
	formatText = ""
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
	formatEnv  = "env"
)

// output is the flag --output.
type output struct {
	format  string
	allowed []string
}

func (o *output) bind(cmd *cobra.Command, allowed ...string) {
	o.allowed = allowed
	cmd.Flags().StringVarP(&o.format, "output", "o", formatText, "output format: "+strings.Join(allowed, ", ")+"; text by default")
}

func (o *output) check() error {
	if o.format == formatText || slices.Contains(o.allowed, o.format) {
		return nil
	}
	return failure.Usage(fmt.Sprintf("--output=%s is not supported; choose %s, or omit it for text", o.format, strings.Join(o.allowed, ", ")))
}

// isData is true for formats that programs read.
func (o *output) isData() bool { return o.format == formatJSON || o.format == formatYAML }

// write writes a report as JSON or YAML.
func (o *output) write(w io.Writer, report any) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	if o.format == formatYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("write the report as YAML: %w", err)
		}
		_, err = fmt.Fprint(w, string(text))
		return err
	}
	_, err = fmt.Fprintln(w, string(text))
	return err
}
