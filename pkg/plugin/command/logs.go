// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// longestLine is the longest line of a log that is printed as one.
const longestLine = 1 << 20

type logsOptions struct {
	follow, previous bool
	tail             int64
}

func (a *app) logsCommand() *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs NAME [MEMBER...]",
		Short: "Print the logs of members",
		Example: `  kubectl etcd logs prod --tail 20
  kubectl etcd logs prod prod-j4j7 --previous`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeMembers,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), o, args[0], args[1:]) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print new lines until interrupted")
	cmd.Flags().BoolVarP(&o.previous, "previous", "p", false, "print the log before the last restart of etcd")
	cmd.Flags().Int64Var(&o.tail, "tail", -1, "number of lines of each member; -1 prints all")
	return cmd
}

func (a *app) logs(ctx context.Context, o *logsOptions, name string, members []string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	pods, err := podsOf(t, members)
	if err != nil {
		return err
	}
	options := &corev1.PodLogOptions{Container: resources.ContainerName, Follow: o.follow, Previous: o.previous}
	if o.tail >= 0 {
		options.TailLines = &o.tail
	}
	// Lines of several members that are followed are printed as they come.
	group, groupCtx := errgroup.WithContext(ctx)
	if !o.follow {
		group.SetLimit(1)
	}
	var print sync.Mutex
	for _, pod := range pods {
		group.Go(func() error {
			stream, err := t.Kube.CoreV1().Pods(t.cluster.Namespace).GetLogs(pod, options).Stream(groupCtx)
			if err != nil {
				return failure.With(err, t.right("get", "pods/log"))
			}
			defer stream.Close()
			return copyLines(a.Out, stream, prefix(pod, len(pods)), &print)
		})
	}
	if err := group.Wait(); err != nil && !(o.follow && errors.Is(ctx.Err(), context.Canceled)) {
		return err
	}
	return nil
}

func prefix(pod string, pods int) string {
	if pods == 1 {
		return ""
	}
	return "[" + pod + "] "
}

// podsOf returns the pods of the members that are named, or of all.
func podsOf(t *target, members []string) ([]string, error) {
	known := map[string]string{}
	var all []string
	for i := range t.cluster.Status.MemberStatuses {
		if m := &t.cluster.Status.MemberStatuses[i]; m.Pod != "" {
			known[m.Name] = m.Pod
			all = append(all, m.Pod)
		}
	}
	if len(members) == 0 {
		if len(all) == 0 {
			return nil, failure.NotMet(fmt.Sprintf("no member of %s has a pod; see kubectl etcd why %s -n %s", t, t.cluster.Name, t.cluster.Namespace))
		}
		return all, nil
	}
	var pods []string
	for _, m := range members {
		pod, ok := known[m]
		if !ok {
			return nil, failure.Usage(fmt.Sprintf("%s has no member %s with a pod; see kubectl etcd status %s -n %s", t, m, t.cluster.Name, t.cluster.Namespace))
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

func copyLines(w io.Writer, from io.Reader, prefix string, print sync.Locker) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 64<<10), longestLine)
	for scanner.Scan() {
		print.Lock()
		_, err := fmt.Fprintf(w, "%s%s\n", prefix, scanner.Bytes())
		print.Unlock()
		if err != nil {
			return fmt.Errorf("print the log: %w", err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return nil
}
