// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent moves snapshots between members of etcd, stores and data
// directories. It runs in Jobs and init containers; its input is a Request of
// pkg/agent, and its Result is the container's termination message.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	// The image has no certificates: these stand in where it is given none.
	_ "golang.org/x/crypto/x509roots/fallback"
	"google.golang.org/grpc/grpclog"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/agent/task"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// terminationLog is where Kubernetes reads the termination message by default.
	terminationLog = "/dev/termination-log"
	resultMode     = 0o644
	headerTimeout  = 5 * time.Second
	// statusTimeout is long: a member that is slow can still serve a backup.
	statusTimeout = 10 * time.Second
	// patience is more than the proxy of a service mesh takes to be ready.
	patience = 15 * time.Second
)

// errNotDone ends the program when the result has said why.
var errNotDone = errors.New("not done")

func main() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, errNotDone) {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "agent",
		Short:         "Moves snapshots between members of etcd, stores and data directories",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Get().GitVersion,
	}
	for command, short := range map[agent.Command]string{
		agent.CommandSave:         "Store a snapshot of a member",
		agent.CommandComplete:     "Make a backup of a stored snapshot that was proved",
		agent.CommandVerify:       "Check a stored backup",
		agent.CommandFetch:        "Write a snapshot of a store or of a member to a file",
		agent.CommandSalvage:      "Write a snapshot of the data directory of a stopped member to a file, with the image's own etcd",
		agent.CommandRestore:      "Make a data directory of a file, with the image's own etcdutl or etcdctl",
		agent.CommandPrune:        "Delete backups that the retention lets go",
		agent.CommandAbortUploads: "Delete what interrupted transfers have left",
	} {
		root.AddCommand(taskCommand(command, short))
	}
	root.AddCommand(&cobra.Command{
		Use:   string(agent.CommandInstall) + " DIRECTORY",
		Short: "Copy this program into a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return task.Install(self, args[0])
		},
	}, diskTestCommand())
	return root
}

func taskCommand(command agent.Command, short string) *cobra.Command {
	var request, resultFile, progressHost string
	c := &cobra.Command{
		Use:   string(command),
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), command, request, resultFile, progressHost, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&request, agent.RequestFlag, "", "What to do, as JSON.")
	c.Flags().StringVar(&resultFile, agent.ResultFileFlag, terminationLog, "Where the result is written, beside the standard output..")
	c.Flags().StringVar(&progressHost, "progress-host", "", "The address on which progress is served, if the request has a port for it. Default: all of the pod's.")
	return c
}

func run(ctx context.Context, command agent.Command, raw, resultFile, progressHost string, out io.Writer) error {
	pool := etcd.NewPool(etcd.PoolConfig{StatusTimeout: statusTimeout})
	defer pool.Close()
	runner := &task.Runner{Open: openStore, Pool: pool, Clock: clock.RealClock{}, Version: version.Get().GitVersion, Progress: &task.Progress{}, Patience: patience,
		Published: os.Getenv(agent.PublishedEnv) != ""}
	request, err := agent.DecodeRequest(command, []byte(raw))
	if err != nil {
		now := time.Now().UTC()
		return report(&agent.Result{Command: command, Started: now, Finished: now, Error: &agent.Error{Class: agent.ClassRequest, Message: err.Error()}}, resultFile, out)
	}
	runner.Progress.ID = request.ID
	if request.ProgressPort > 0 {
		closeServer, err := serveProgress(ctx, runner.Progress, net.JoinHostPort(progressHost, strconv.Itoa(int(request.ProgressPort))))
		if err != nil {
			// A backup without visible progress is better than none.
			klog.FromContext(ctx).Error(err, "Progress is not served")
		} else {
			defer closeServer()
		}
	}
	return report(runner.Run(ctx, command, request), resultFile, out)
}

func serveProgress(ctx context.Context, handler http.Handler, address string) (func(), error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// report writes the result to where Kubernetes keeps it, and to the standard output.
func report(result *agent.Result, file string, out io.Writer) error {
	raw, err := result.Encode()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
		return err
	}
	if err := writeResult(raw, file); err != nil {
		return err
	}
	if result.Error != nil {
		return errNotDone
	}
	return nil
}

// writeResult writes a result to where Kubernetes keeps it.
func writeResult(raw []byte, file string) error {
	// Kubernetes has made the file; outside of a pod there is none, and /dev is not
	// the place for one.
	if _, err := os.Stat(file); err != nil && file == terminationLog {
		return nil
	}
	if err := os.WriteFile(file, raw, resultMode); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
