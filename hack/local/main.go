// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command local runs a real Kubernetes cluster on this machine, made of nothing
// but processes and Linux namespaces, for developing and testing the operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/build"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/cluster"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/node"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/progress"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

const usage = `usage: local COMMAND

  build [--kubernetes V] [PROGRAM...]
                         build every program and image that is missing, or only
                         the named programs
  up [--nodes N] [--audit] [--toleration-seconds S] [--ip-families ipv4|dual|ipv6]
     [--kubernetes V] [--tour]
                         bring the cluster up, repair it, or add nodes to it; --tour
                         does not build what only tests use
  down                   remove the cluster; what was built is kept
  check-clean            list what there is of a cluster; fail if there is anything
  status                 print what runs, with process ids and memory
  load FILE...           import images (docker-archive) into all nodes
  image --ref REF --out FILE [--entrypoint JSON] [--user UID] SOURCE=DEST...
                         make an image of one layer from files
  node ACTION NAME       ` + nodeUsage + `
  node shell NAME [COMMAND...]
                         run a command inside a node
  bin-dir [--kubernetes V]
                         print where the programs of that version are
  kubeconfig, images-dir, logs-dir, state-dir
                         print where something is

V is a minor version of Kubernetes, "newest" or "oldest". Without it, it is that of the
cluster that is up, or else the newest.
`

const nodeUsage = `kill, start, reboot, partition, heal, kubelet-stop or kubelet-start`

const kubernetesUsage = `minor version of Kubernetes, "newest" or "oldest"`

// errUsage says that the command line makes no sense.
var errUsage = errors.New("see above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		fmt.Fprintln(os.Stderr, "local: interrupted: run the same command again to go on, or down to remove all of it")
		os.Exit(130)
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "local: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	l, err := layout.FromEnvironment()
	if err != nil {
		return err
	}
	name, args := args[0], args[1:]
	switch name {
	case "kubeconfig":
		return printPath(l.Kubeconfig())
	case "bin-dir":
		return printPrograms(l, args)
	case "images-dir":
		return printPath(l.Images())
	case "logs-dir":
		return printPath(l.Logs())
	case "state-dir":
		return printPath(l.State)
	case "image":
		return writeImage(args)
	}
	command, ok := clusterCommands[name]
	if !ok {
		return errUsage
	}
	if err := cluster.CheckMachine(); err != nil {
		return err
	}
	return command(ctx, &cluster.Cluster{Layout: l, Progress: progress.New()}, args)
}

// printPrograms prints the flat directory of programs.
func printPrograms(l layout.Layout, args []string) error {
	release, rest, err := releaseFlag("bin-dir", &cluster.Cluster{Layout: l}, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errUsage
	}
	return printPath(l.Current(release))
}

// releaseFlag parses a command line with nothing but the flag of the release, and returns
// the other arguments.
func releaseFlag(command string, c *cluster.Cluster, args []string) (kubernetes.Release, []string, error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	minor := flags.String("kubernetes", "", kubernetesUsage)
	if err := flags.Parse(args); err != nil {
		return kubernetes.Release{}, nil, errUsage
	}
	if *minor == "" {
		release, err := c.Kubernetes()
		return release, flags.Args(), err
	}
	release, err := kubernetes.Parse(*minor)
	return release, flags.Args(), err
}

func printPath(path string) error {
	_, err := fmt.Println(path)
	return err
}

// clusterCommands need a machine that can run a cluster.
var clusterCommands = map[string]func(context.Context, *cluster.Cluster, []string) error{
	"build": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		release, names, err := releaseFlag("build", c, args)
		if err != nil {
			return err
		}
		builder := &build.Builder{Layout: c.Layout, Progress: c.Progress, Kubernetes: release}
		run := builder.Run
		if len(names) > 0 {
			run = func(ctx context.Context) error { return builder.RunOnly(ctx, names) }
		}
		if err := run(ctx); err != nil {
			return err
		}
		c.Progress.Step("%s", builder.Summary())
		return nil
	},
	"up": up,
	"down": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		if len(args) > 0 {
			return errUsage
		}
		return c.Down(ctx)
	},
	"check-clean": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		if len(args) > 0 {
			return errUsage
		}
		found, err := c.CheckClean(ctx)
		if len(found) > 0 {
			fmt.Println(strings.Join(found, "\n"))
		}
		return err
	},
	"status": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		if len(args) > 0 {
			return errUsage
		}
		return c.Status(ctx, os.Stdout)
	},
	"load": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		if len(args) == 0 {
			return errUsage
		}
		return c.Load(ctx, args)
	},
	"node": func(ctx context.Context, c *cluster.Cluster, args []string) error {
		if len(args) < 2 {
			return errUsage
		}
		return c.Node(ctx, args[0], args[1], args[2:])
	},
	node.InitCommand: func(_ context.Context, c *cluster.Cluster, args []string) error {
		if os.Getpid() != 1 || len(args) != 3 {
			return errUsage
		}
		n, err := topology.ParseNode(args[0])
		if err != nil {
			return err
		}
		families, err := topology.ParseFamilies(args[1])
		if err != nil {
			return err
		}
		release, err := kubernetes.Parse(args[2])
		if err != nil {
			return err
		}
		return node.RunInit(c.Layout, n, families, release)
	},
}

func up(ctx context.Context, c *cluster.Cluster, args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	nodes := flags.Int("nodes", 1, "number of nodes")
	audit := flags.Bool("audit", false, "log the requests of the operator to audit.log in the logs-dir")
	toleration := flags.Int("toleration-seconds", 300, "how long pods stay bound to a node that is lost")
	families := flags.String("ip-families", "", "addresses of the cluster: ipv4, dual or ipv6; dual by default where the machine has IPv6")
	minor := flags.String("kubernetes", "", kubernetesUsage)
	tour := flags.Bool("tour", false, "do not build programs and images that only tests use")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	// A flag that is not given leaves a cluster that is up as it is.
	request := cluster.Request{Tour: *tour}
	if *families != "" {
		parsed, err := topology.ParseFamilies(*families)
		if err != nil {
			return err
		}
		request.Families = &parsed
	}
	if *minor != "" {
		release, err := kubernetes.Parse(*minor)
		if err != nil {
			return err
		}
		request.Kubernetes = &release
	}
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "nodes":
			request.Nodes = nodes
		case "audit":
			request.Audit = audit
		case "toleration-seconds":
			request.TolerationSeconds = toleration
		}
	})
	return c.Up(ctx, request)
}
