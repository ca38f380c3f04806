// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Command is one call of a program.
type Command struct {
	Args  []string
	Stdin string
	// Env is added to the environment.
	Env []string
}

// commandGrace is how long a program may take to end once its context has.
const commandGrace = 2 * time.Second

// Kubectl runs kubectl as the administrator and returns what it printed. The error
// holds what it said on the error output.
func (e *Environment) Kubectl(ctx context.Context, c Command) (string, error) {
	stdout, _, err := e.KubectlOutputs(ctx, c)
	return stdout, err
}

// KubectlOutputs is Kubectl with the error output, where warnings go.
func (e *Environment) KubectlOutputs(ctx context.Context, c Command) (stdout, stderr string, err error) {
	return run(e.KubectlCommand(ctx, c), "kubectl")
}

// KubectlCommand prepares a kubectl that the caller runs himself.
func (e *Environment) KubectlCommand(ctx context.Context, c Command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.program("kubectl"), c.Args...)
	cmd.WaitDelay = commandGrace
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
	cmd.Env = append(cmd.Env, c.Env...)
	if c.Stdin != "" {
		cmd.Stdin = strings.NewReader(c.Stdin)
	}
	return cmd
}

// LocalTool runs the program that runs the local Kubernetes.
func (e *Environment) LocalTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.Local, args...)
	cmd.WaitDelay = commandGrace
	// Ctrl-C at the terminal must not cut off what repairs a node.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, _, err := run(cmd, filepath.Base(e.Local))
	return strings.TrimSpace(stdout), err
}

func run(cmd *exec.Cmd, name string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), errOut.String(),
			fmt.Errorf("%s %s: %w: %s", name, strings.Join(cmd.Args[1:], " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), errOut.String(), nil
}
