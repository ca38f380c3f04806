// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is the prose of one file.
type source struct {
	path   string
	blocks []block
}

// block is a comment, a message or a document: sentences that belong together. Each of
// its lines knows from which line of the file it comes.
type block []line

type line struct {
	number int
	text   string
}

// alert is the part of Vale's JSON output that is read.
type alert struct {
	Check   string
	Message string
	Line    int
}

// runVale writes the prose of each file into a temporary directory, one blank line between
// blocks, and checks all files with one run of Vale.
func runVale(program, config string, sources []source) ([]finding, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "prose-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	byFile := map[string]int{}
	lines := make([][]int, len(sources))
	for i, s := range sources {
		name := fmt.Sprintf("%06d.md", i)
		byFile[name] = i
		var text string
		text, lines[i] = layOut(s.blocks)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	alerts, err := vale(program, config, dir)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for file, list := range alerts {
		i, ok := byFile[filepath.Base(file)]
		if !ok {
			return nil, fmt.Errorf("vale reports on %s, which is not one of its input files", file)
		}
		for _, a := range list {
			findings = append(findings, finding{path: sources[i].path, line: at(lines[i], a.Line), rule: a.Check, message: a.Message})
		}
	}
	return findings, nil
}

// layOut joins blocks and tells for each line of the text which line of the file it is.
func layOut(blocks []block) (text string, lines []int) {
	var b strings.Builder
	for _, block := range blocks {
		for _, l := range block {
			b.WriteString(l.text)
			b.WriteByte('\n')
			lines = append(lines, l.number)
		}
		b.WriteByte('\n')
		lines = append(lines, block[len(block)-1].number)
	}
	return b.String(), lines
}

func at(lines []int, n int) int { return lines[max(0, min(n, len(lines))-1)] }

// vale runs the program; its exit code 1 means that it has alerts.
func vale(program, config, dir string) (map[string][]alert, error) {
	var out, stderr bytes.Buffer
	command := exec.CommandContext(context.Background(), program, "--config="+config, "--output=JSON", "--no-wrap", dir)
	command.Stdout, command.Stderr = &out, &stderr
	failed := command.Run()
	alerts := map[string][]alert{}
	if err := json.Unmarshal(out.Bytes(), &alerts); err != nil {
		return nil, fmt.Errorf("run %s: %w: %s%s", program, errors.Join(err, failed), out.String(), stderr.String())
	}
	return alerts, nil
}
