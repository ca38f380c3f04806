// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/diskcheck"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// removal is how long the plugin waits until Kubernetes has removed the pod and the PVC.
const removal = time.Minute

type diskcheckOptions struct {
	output
	class, size, node, image string
	writes                   int
	limit, timeout           time.Duration
}

func (a *app) diskcheckCommand() *cobra.Command {
	o := &diskcheckOptions{}
	cmd := &cobra.Command{
		Use:   "diskcheck",
		Short: "Measure whether a disk of a StorageClass is fast enough for etcd",
		Long: `Creates a Job with a PVC in the namespace. The Job makes 10000 writes of 2300 bytes, each
followed by fdatasync, as etcd appends to its log. The FAQ of etcd recommends that 99 of
100 fdatasyncs take less than 10 ms. Exit code 3 means that the disk is slower.

The Job, its pod and the PVC are removed at the end, also after Ctrl-C. If the plugin is
killed, Kubernetes removes them later. It needs the role edit of the namespace.`,
		Example: `  kubectl etcd diskcheck --storage-class fast
  kubectl etcd diskcheck --storage-class fast --node node-1 -o json`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.diskcheck(cmd.Context(), o) },
	}
	o.bind(cmd, formatJSON, formatYAML)
	flags := cmd.Flags()
	flags.StringVar(&o.class, "storage-class", "", "StorageClass to measure; the default class of Kubernetes if omitted")
	flags.StringVar(&o.size, "size", "1Gi", "size of the volume; some disks are faster if they are larger")
	flags.StringVar(&o.node, "node", "", "node to measure on; any node if omitted")
	flags.StringVar(&o.image, "image", "", "image of the operator; if omitted, that of a member in the namespace, or of the controller")
	flags.IntVar(&o.writes, "writes", agent.DiskTestWrites, fmt.Sprintf("number of writes, at most %d", agent.MaxDiskTestWrites))
	flags.DurationVar(&o.limit, "limit", agent.DiskTestLimit, "how long to write at most; a slow disk makes fewer writes")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for the result")
	return cmd
}

// parse returns what is measured, without the image.
func (o *diskcheckOptions) parse(namespace string) (resources.DiskCheck, error) {
	size, err := resource.ParseQuantity(o.size)
	switch {
	case err != nil || size.Sign() <= 0:
		return resources.DiskCheck{}, failure.Usage(fmt.Sprintf("--size=%s is no size; give one such as 1Gi", o.size))
	case o.writes < 1 || o.writes > agent.MaxDiskTestWrites:
		return resources.DiskCheck{}, failure.Usage(fmt.Sprintf("--writes=%d is out of range; give 1 to %d", o.writes, agent.MaxDiskTestWrites))
	case size.Value() < 2*int64(o.writes)*agent.DiskTestWriteBytes:
		return resources.DiskCheck{}, failure.Usage(fmt.Sprintf("--size=%s has no room for %d writes of %d bytes; give a larger one", o.size, o.writes, agent.DiskTestWriteBytes))
	case o.limit <= 0 || o.timeout <= o.limit:
		return resources.DiskCheck{}, failure.Usage(fmt.Sprintf("--limit=%v must be above 0, and --timeout=%v longer than --limit", o.limit, o.timeout))
	}
	return resources.DiskCheck{
		Namespace: namespace, StorageClass: o.class, Size: size, Node: o.node, Writes: o.writes, Limit: o.limit,
		// The plugin ends first, so that it can say why.
		Deadline: o.timeout + removal,
	}, nil
}

func (a *app) diskcheck(ctx context.Context, o *diskcheckOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	clients, err := a.connect()
	if err != nil {
		return err
	}
	what, err := o.parse(clients.Namespace)
	if err != nil {
		return err
	}
	if err := findClass(ctx, clients, o.class); err != nil {
		return err
	}
	image := diskcheck.Image{Name: o.image}
	if o.image == "" {
		if image, err = diskcheck.FindImage(ctx, clients); err != nil {
			return err
		}
	}
	what.Image, what.ImagePullSecrets = image.Name, image.PullSecrets
	state, err := a.measure(ctx, clients, o, what)
	if err != nil {
		return err
	}
	return a.printDisk(o, diskcheck.NewReport(o.class, o.size, state.Node, state.Test))
}

// findClass returns an error for a class that does not exist. A user that may not read classes
// sees in the progress what the PVC waits for.
func findClass(ctx context.Context, clients *connect.Clients, name string) error {
	if name == "" {
		return nil
	}
	_, err := clients.Kube.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w; see kubectl get storageclasses", err)
	case apierrors.IsForbidden(err):
		return nil
	default:
		return err
	}
}

// measure runs the check and removes it.
func (a *app) measure(ctx context.Context, clients *connect.Clients, o *diskcheckOptions, what resources.DiskCheck) (state diskcheck.State, err error) {
	line := a.line("Disk check")
	check, err := diskcheck.Start(ctx, clients, what)
	if err != nil {
		return state, err
	}
	defer func() {
		line.Show(progress.Step{Text: "removes the pod and the PVC"})
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		removed := check.Remove(end, a.Every)
		line.Clear()
		switch {
		case removed != nil:
			err = errors.Join(err, removed)
		case errors.Is(err, context.Canceled):
			err = failure.Interrupted("interrupted; Job " + check.Name() + ", its pod and its PVC were removed")
		}
	}()
	err = progress.Follow(ctx, line, a.Every, o.timeout, func(ctx context.Context) (progress.Step, bool, error) {
		var err error
		state, err = check.Look(ctx)
		step := progress.Step{Text: state.Text}
		if t := state.Test; t != nil {
			step.Done, step.Total = int64(t.Writes), int64(t.Wanted)
		}
		return step, state.Test != nil && state.Test.Done, err
	})
	return state, err
}

// printDisk prints the report. A disk that is too slow is an error with an exit code.
func (a *app) printDisk(o *diskcheckOptions, r *diskcheck.Report) error {
	if o.isData() {
		if err := o.write(a.Out, r); err != nil {
			return err
		}
	} else {
		class := "The default StorageClass"
		if r.StorageClass != "" {
			class = "StorageClass " + r.StorageClass
		}
		fmt.Fprintf(a.Out, "%s on node %s: %d of %d writes of %d bytes in %.1f s, each followed by fdatasync\n", class, r.Node, r.Writes, r.Wanted, r.WriteBytes, r.TookMilliseconds/1000)
		fmt.Fprintf(a.Out, "  p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", r.P50Milliseconds, r.P99Milliseconds, r.MaxMilliseconds)
	}
	if !r.FastEnough {
		return failure.NotMet(fmt.Sprintf("the disk is too slow for etcd: p99 of fdatasync is %.2f ms, and etcd recommends less than %d ms", r.P99Milliseconds, diskcheck.RecommendedMilliseconds))
	}
	if !o.isData() {
		fmt.Fprintf(a.Out, "  Fast enough for etcd, which recommends a p99 of less than %d ms.\n", diskcheck.RecommendedMilliseconds)
	}
	return nil
}
