// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/screen"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Executor runs a program in the container of etcd of a pod.
type Executor func(ctx context.Context, clients *connect.Clients, pod *corev1.Pod, command []string, in io.Reader, out, errOut io.Writer) error

// ctlOptions are the flags of ctl and of shell.
type ctlOptions struct {
	member     string
	stdin, yes bool
}

func (o *ctlOptions) bind(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.member, "member", "", "member to run in and to use as the endpoint")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "run auth enable, member remove and compaction without a question")
	_ = cmd.RegisterFlagCompletionFunc("member", a.completeMemberFlag) // the flag exists
}

func (a *app) ctlCommand() *cobra.Command {
	o := &ctlOptions{}
	cmd := &cobra.Command{
		Use:   "ctl NAME -- ARGUMENT...",
		Short: "Run etcdctl in a member, with the endpoints and certificates of the cluster",
		Long: `Runs the etcdctl of the image in the container of a member. The endpoints are those of
all members, or of the one that --member names; --endpoints among the arguments replaces
them. The exit code is that of etcdctl. It needs the right to get pods and to create
pods/exec.

auth enable, member remove and compaction ask first. Everything else runs at once.`,
		Example: `  kubectl etcd ctl prod -- endpoint status -w table
  kubectl etcd ctl prod -- get /registry --prefix --keys-only
  kubectl etcd ctl prod -i -- txn < FILE`,
		Args:              takes(2, -1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.ctl(cmd.Context(), o, args[0], args[1:]) },
	}
	o.bind(a, cmd)
	cmd.Flags().BoolVarP(&o.stdin, "stdin", "i", false, "pass the input to etcdctl")
	return cmd
}

func (a *app) ctl(ctx context.Context, o *ctlOptions, name string, args []string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	if err := a.confirmDanger(ctx, o, args, a.askOnce); err != nil {
		return err
	}
	var in io.Reader
	if o.stdin {
		in = a.In
	}
	return a.runEtcdctl(ctx, o, t, args, in)
}

// podOf returns the pod of the member that runs etcdctl.
func podOf(ctx context.Context, o *ctlOptions, t *target) (*corev1.Pod, error) {
	member, err := chooseMember(t, o.member)
	if err != nil {
		return nil, err
	}
	pod, err := t.Kube.CoreV1().Pods(t.cluster.Namespace).Get(ctx, member.Pod, metav1.GetOptions{})
	return pod, failure.With(err, t.right("get", "pods"))
}

// runEtcdctl runs one command of etcdctl.
func (a *app) runEtcdctl(ctx context.Context, o *ctlOptions, t *target, args []string, in io.Reader) error {
	pod, err := podOf(ctx, o, t)
	if err != nil {
		return err
	}
	out := a.Out
	if !a.OutTerminal {
		out = screen.Raw(out) // values may be any bytes
	}
	err = a.Exec(ctx, t.Clients, pod, etcdctl(t.cluster, pod, o.member, args), in, out, a.Err)
	var exit exec.CodeExitError
	if errors.As(err, &exit) {
		return &failure.ExitError{Code: failure.Code(exit.Code), Err: fmt.Errorf("etcdctl in pod %s: %w", pod.Name, err)}
	}
	return failure.With(err, t.right("create", "pods/exec"))
}

// chooseMember returns the member that is named, or else one that is healthy; a follower
// first, because the leader has more to do.
func chooseMember(t *target, name string) (*v1beta2.MemberStatus, error) {
	var chosen *v1beta2.MemberStatus
	rank := func(m *v1beta2.MemberStatus) int {
		switch {
		case m.Healthy != corev1.ConditionTrue:
			return 1
		case m.Role == v1beta2.MemberRoleLeader:
			return 2
		case m.Role == v1beta2.MemberRoleFollower:
			return 3
		default:
			return 0
		}
	}
	for i := range t.cluster.Status.MemberStatuses {
		m := &t.cluster.Status.MemberStatuses[i]
		switch {
		case name != "" && m.Name == name && m.Pod != "":
			return m, nil
		case name != "" || m.Pod == "":
		case chosen == nil || rank(m) > rank(chosen):
			chosen = m
		}
	}
	switch {
	case name != "":
		return nil, failure.Usage(fmt.Sprintf("%s has no member %s with a pod; see kubectl etcd status %s -n %s", t, name, t.cluster.Name, t.cluster.Namespace))
	case chosen == nil:
		return nil, failure.NotMet(fmt.Sprintf("no member of %s has a pod; see kubectl etcd why %s -n %s", t, t.cluster.Name, t.cluster.Namespace))
	default:
		return chosen, nil
	}
}

// etcdctl returns the command line that runs in a pod.
func etcdctl(cluster *v1beta2.EtcdCluster, pod *corev1.Pod, member string, args []string) []string {
	command := []string{"etcdctl"}
	if m := minor(pod.Annotations[resources.AnnotationVersion]); m == "3.2" || m == "3.3" {
		// Before 3.4 etcdctl speaks version 2 of the API by default.
		command = []string{"env", "ETCDCTL_API=3", "etcdctl"}
	}
	hasFlag := func(name string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
	}
	if !hasFlag("--endpoints") {
		command = append(command, "--endpoints="+strings.Join(endpoints(cluster, member), ","))
	}
	for _, f := range []struct{ server, client string }{
		{"--trusted-ca-file=", "--cacert"}, {"--cert-file=", "--cert"}, {"--key-file=", "--key"},
	} {
		if file := flagOf(pod, f.server); file != "" && !hasFlag(f.client) {
			command = append(command, f.client+"="+file)
		}
	}
	return append(command, args...)
}

func endpoints(cluster *v1beta2.EtcdCluster, member string) []string {
	if member != "" {
		return []string{resources.ClientURL(cluster, member)}
	}
	var list []string
	for i := range cluster.Status.MemberStatuses {
		if m := &cluster.Status.MemberStatuses[i]; m.Pod != "" && m.Role != v1beta2.MemberRolePending {
			list = append(list, resources.ClientURL(cluster, m.Name))
		}
	}
	return list
}

// flagOf returns the value of a flag of etcd in a pod.
func flagOf(pod *corev1.Pod, flag string) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name != resources.ContainerName {
			continue
		}
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if value, ok := strings.CutPrefix(arg, flag); ok {
				return value
			}
		}
	}
	return ""
}

// execInPod runs a program as kubectl exec does: by WebSocket, or by SPDY where a proxy does not
// know the former.
func execInPod(ctx context.Context, clients *connect.Clients, pod *corev1.Pod, command []string, in io.Reader, out, errOut io.Writer) error {
	address := clients.Kube.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: resources.ContainerName, Command: command, Stdin: in != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec).URL()
	webSocket, err := remotecommand.NewWebSocketExecutor(clients.Config, "GET", address.String())
	if err != nil {
		return fmt.Errorf("prepare the connection to pod %s: %w", pod.Name, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(clients.Config, "POST", address)
	if err != nil {
		return fmt.Errorf("prepare the connection to pod %s: %w", pod.Name, err)
	}
	either, err := remotecommand.NewFallbackExecutor(webSocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("prepare the connection to pod %s: %w", pod.Name, err)
	}
	return either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
}
