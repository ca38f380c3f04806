// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/command"
)

var (
	// inCode is a command line between backquotes, whose pipes have backslashes in tables.
	inCode = regexp.MustCompile("`kubectl etcd ([^`]+)`")
	// inBlock is a line of a block of commands, or of a transcript.
	inBlock = regexp.MustCompile(`(?m)^[ ]*(?:\$ )?kubectl etcd ([^\n]+)$`)
	// behind is what a shell does not pass to the program.
	behind = regexp.MustCompile(`\s+(?:#|\\?\||>|<|&&).*$`)
	// optional marks what may be left out.
	optional = strings.NewReplacer("[", "", "]", "", "...", "", `"`, "")
)

// commandLines returns the command lines of kubectl etcd in a page.
func commandLines(page string) []string {
	var lines []string
	for _, match := range append(inCode.FindAllStringSubmatch(page, -1), inBlock.FindAllStringSubmatch(page, -1)...) {
		lines = append(lines, strings.TrimSpace(optional.Replace(behind.ReplaceAllString(match[1], ""))))
	}
	return lines
}

// TestCommandLinesOfPages: each line of kubectl etcd in a page names a command that exists, with
// flags that the command has.
func TestCommandLinesOfPages(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]int{}
	check := func(file string) {
		page, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(page)) {
			found[filepath.Base(file)]++
			if strings.HasPrefix(line, "COMMAND ") { // stands for any command
				continue
			}
			if err := command.Parse(strings.Fields(line)); err != nil {
				t.Errorf("%s: kubectl etcd %s: %v", file, line, err)
			}
		}
	}
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			check(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	check(filepath.Join(root, "README.md"))
	check(filepath.Join(root, "CHANGELOG.md"))
	for page, least := range map[string]int{
		"kubectl-plugin.md": 35, "on-call.md": 9, "quorum-loss.md": 5, "scale.md": 5, "restore.md": 3, "back-up.md": 2, "upgrade-etcd.md": 1,
		"full-database.md": 2, "corrupt-member.md": 4, "hung-disk.md": 1, "unresponsive-node.md": 1, "volumes.md": 1, "delete-and-protect.md": 1, "tls.md": 2,
	} {
		if found[page] < least {
			t.Errorf("%s has %d lines of kubectl etcd, want %d", page, found[page], least)
		}
	}
}

// TestParse: the check of the pages finds what is wrong.
func TestParse(t *testing.T) {
	for line, good := range map[string]bool{
		"status": true, "status prod -n x -w": true, "ctl prod -- endpoint status -w table": true, "check api": true, "status --help": true,
		"bogus": false, "status --bogus": false, "status a b": false, "check bogus": false, "upgrade prod": false, "wake prod --size x": false,
	} {
		if err := command.Parse(strings.Fields(line)); (err == nil) != good {
			t.Errorf("%s: %v", line, err)
		}
	}
}
