// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// docsTimeout bounds the commands of one page.
const docsTimeout = 15 * time.Minute

// docsBlock is a block of commands of a page, and the output that the page shows.
type docsBlock struct {
	commands string
	output   string
}

// markedBlock finds blocks that a comment in the line before them marks.
var markedBlock = regexp.MustCompile("(?ms)^<!-- (test|output) -->\n```[a-z]*\n(.*?)^```$")

// TestDocs runs the commands that pages mark as tests, each page in a namespace of its own.
// docs/contributing/README.md says how a page marks them.
func TestDocs(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, page := range pages {
		blocks := docsBlocks(t, page)
		if len(blocks) == 0 {
			continue
		}
		tested++
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel() // with the other pages
			s := startFor(t, docsTimeout)
			runBlocks(s, root, blocks)
		})
	}
	if tested == 0 {
		t.Error("no page of docs marks a block of commands as a test")
	}
}

// docsBlocks returns the marked blocks of a page, in order.
func docsBlocks(t *testing.T, page string) []docsBlock {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page, "contributing") {
		return nil // that page shows how blocks are marked
	}
	var blocks []docsBlock
	for _, m := range markedBlock.FindAllStringSubmatch(string(text), -1) {
		switch m[1] {
		case "test":
			blocks = append(blocks, docsBlock{commands: m[2]})
		case "output":
			if len(blocks) == 0 {
				t.Fatalf("%s: an output block before the first test block", page)
			}
			blocks[len(blocks)-1].output = m[2]
		}
	}
	return blocks
}

// runBlocks runs the blocks one after the other. Variables of one are there in the next.
func runBlocks(s *scenario, root string, blocks []docsBlock) {
	s.Helper()
	dir := s.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	s.must(kubeconfigFor(kubeconfig, s.namespace), "write a kubeconfig for the namespace")
	state := filepath.Join(dir, "state")
	s.must(os.WriteFile(state, nil, 0o600), "write the variables")
	for i, block := range blocks {
		script := "set -aeuo pipefail\n. " + state + "\n" + block.commands + "\nset +e\nexport -p >" + state + "\n"
		out, err := runBash(s.ctx(), root, kubeconfig, script)
		if err != nil {
			s.Fatalf("block %d failed: %v\n%s\n%s", i+1, err, block.commands, out)
		}
		if missing := missingLines(block.output, out); len(missing) > 0 {
			s.Errorf("block %d printed no line with %q:\n%s", i+1, missing, out)
		}
	}
}

// kubeconfigFor writes the kubeconfig of the tests with another current namespace.
func kubeconfigFor(path, namespace string) error {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.WriteToFile(*config, path)
}

// runBash runs a script and returns what it printed.
func runBash(ctx context.Context, dir, kubeconfig, script string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir = dir
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if bin := os.Getenv("ETCD_OPERATOR_BIN"); bin != "" {
		command.Env = append(command.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

var (
	randomSuffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{10}\b`)
	anyNumber    = regexp.MustCompile(`\d+`)
)

// missingLines returns the lines of the expected output that no line of the real one
// contains, after what differs from run to run was made the same in both.
func missingLines(expected, printed string) []string {
	var missing []string
	lines := strings.Split(sameEachRun(printed), "\n")
	for _, want := range strings.Split(strings.TrimSpace(sameEachRun(expected)), "\n") {
		parts := strings.Split(want, "…")
		found := false
		for _, line := range lines {
			found = found || containsInOrder(line, parts)
		}
		if !found {
			missing = append(missing, want)
		}
	}
	return missing
}

// sameEachRun replaces random names and numbers, and makes one space of many.
func sameEachRun(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = anyNumber.ReplaceAllString(randomSuffix.ReplaceAllString(line, "-x"), "0")
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func containsInOrder(line string, parts []string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(line, strings.TrimSpace(part))
		if !found {
			return false
		}
		line = after
	}
	return true
}
