// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// timelineLines is how many of the last lines of the timeline Dump returns.
const timelineLines = 60

// Dump writes to a file what explains a failure in a namespace: objects, events, the logs of members and
// programs, and the timeline of what the controller decided there. It returns the objects and the end of
// the timeline, for those who cannot read the file later.
func (e *Environment) Dump(ctx context.Context, namespace, file string) (excerpt string, err error) {
	const all = "etcd,etcdbackups,etcdrestores,jobs,pods,pvc,services,pdb,configmaps"
	var text strings.Builder
	run := func(args ...string) string {
		out, err := e.Kubectl(ctx, Command{Args: args})
		if err != nil {
			out += err.Error()
		}
		fmt.Fprintf(&text, "== kubectl %s\n%s\n", strings.Join(args, " "), out)
		return out
	}
	objects := run("get", all, "-n", namespace, "-o", "wide")
	events := run("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp", "--no-headers",
		"-o=custom-columns=TIME:.metadata.creationTimestamp,KIND:.involvedObject.kind,NAME:.involvedObject.name,REASON:.reason,MESSAGE:.message")
	run("get", all, "-n", namespace, "-o", "yaml")
	run("logs", "-n", namespace, "-l", "app=etcd", "--all-containers", "--prefix", "--timestamps", "--tail=-1", "--max-log-requests=50")
	run("get", "pods", "-n", SystemNamespace, "-o", "wide")
	said := run("logs", "-n", SystemNamespace, "deployment/"+Controller, "--all-pods", "--prefix", "--timestamps", "--tail=-1")
	run("logs", "-n", SystemNamespace, "deployment/"+APIServer, "--all-pods", "--prefix", "--timestamps", "--since=10m")

	lines := timeline(namespace, events, said)
	fmt.Fprintf(&text, "== timeline\n%s\n", strings.Join(lines, "\n"))
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return "", err
	}
	excerpt = objects + "\n" + strings.Join(lines[max(0, len(lines)-timelineLines):], "\n")
	return excerpt, os.WriteFile(file, []byte(text.String()), 0o600)
}

// timeline returns the events and what the controller said of a namespace, by time.
func timeline(namespace, events, said string) []string {
	lines := slices.Collect(strings.Lines(events))
	for line := range strings.Lines(said) {
		// [pod/NAME/CONTAINER] TIME TEXT
		if _, line, prefixed := strings.Cut(line, "] "); prefixed && strings.Contains(line, namespace) {
			lines = append(lines, line)
		}
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines) // each begins with its time
	return lines
}
