// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// enforcer is the program that enforces NetworkPolicies on a node; the pod network of the
// local Kubernetes enforces none.
const enforcer = "network-policies"

// EnforceNetworkPolicies enforces NetworkPolicies for IPv4 on every ready node, until stop
// is called or this process ends.
func (e *Environment) EnforceNetworkPolicies(ctx context.Context) (stop func() error, err error) {
	program := filepath.Join(e.Bin, enforcer)
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("find the program that enforces NetworkPolicies: %w; run `local build %s` in the repository", err, enforcer)
	}
	nodes, err := e.ReadyNodes(ctx)
	if err != nil {
		return nil, err
	}
	var stops []func() error
	stop = func() error {
		var all []error
		for _, stop := range stops {
			all = append(all, stop())
		}
		return errors.Join(all...)
	}
	for _, node := range nodes {
		stopNode, err := e.enforceOn(ctx, node, program)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		stops = append(stops, stopNode)
	}
	return stop, nil
}

// enforceOn starts the program inside a node and waits until it has read the policies. It
// ends when its standard input does, and not with ctx: it has to remove its rules first.
func (e *Environment) enforceOn(ctx context.Context, node, program string) (stop func() error, err error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), e.Local, "node", "shell", node, program, "--node="+node)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("enforce policies on node %s: %w", node, err)
	}
	lines := bufio.NewScanner(output)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.HasPrefix(lines.Text(), enforcer+": enforcing") {
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				_, _ = io.Copy(io.Discard, output)
			}()
			return func() error {
				closed := input.Close()
				<-drained
				return errors.Join(closed, cmd.Wait())
			}, nil
		}
	}
	return nil, fmt.Errorf("%s on node %s has ended: %w: %s", enforcer, node, errors.Join(lines.Err(), cmd.Wait()), strings.Join(said, "\n"))
}
