// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	etcdBinary = "/usr/local/bin/etcd"
	dataMount  = "/var/etcd"
	dataDir    = dataMount + "/data"
)

// command returns what the container of a member runs. It is an argument list: no
// value can end its argument or reach a shell. Flags of the user come last.
func command(c *v1beta2.EtcdCluster, m MemberPod) []string {
	has := featuresOf(Version(c))
	args := []string{
		etcdBinary,
		"--data-dir=" + dataDir,
		"--name=" + m.Name,
		"--initial-advertise-peer-urls=" + PeerURL(c, m.Name),
		"--listen-peer-urls=" + listenURL(HasPeerTLS(c), PeerPort),
		"--listen-client-urls=" + listenURL(HasClientTLS(c), ClientPort),
		"--advertise-client-urls=" + ClientURL(c, m.Name),
	}
	args = append(args, tlsArgs(c, m)...)
	if m.Bootstrap {
		args = append(args, "--initial-cluster-token="+m.Token)
	}
	if has.metricsListener {
		args = append(args, "--listen-metrics-urls="+listenURL(false, MetricsPort))
	}
	if has.learners {
		// etcd's own check rejects a membership change until all connections have
		// been up for five seconds. The controller keeps the same rule before each
		// change, on a fresh linearizable read, so etcd need not wait as well.
		args = append(args, "--strict-reconfig-check=false")
	}
	if o := c.Spec.Etcd; o != nil {
		args = append(args, optionArgs(o, has)...)
		args = append(args, o.ExtraArgs...)
	}
	for i := range args {
		args[i] = literal(args[i])
	}
	return args
}

// literal returns a text of a user for the command or the environment of a container. The kubelet replaces
// $(NAME) in it by the value of a variable, which may come from a Secret, and etcd logs its flags. The kubelet
// writes $$ as $.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// literalEnv returns variables of a user with their values as they are written.
func literalEnv(env []corev1.EnvVar) []corev1.EnvVar {
	written := slices.Clone(env)
	for i := range written {
		written[i].Value = literal(written[i].Value)
	}
	return written
}

// initialCluster joins the peers in the order of their names, so that the same set
// always gives the same pod.
func initialCluster(peers []Peer) string {
	entries := make([]string, 0, len(peers))
	for _, p := range peers {
		entries = append(entries, p.Name+"="+p.URL)
	}
	slices.Sort(entries)
	return strings.Join(entries, ",")
}

// optionArgs maps the typed options to flags.
func optionArgs(o *v1beta2.EtcdOptions, has features) []string {
	var args []string
	if q := o.QuotaBackendBytes; q != nil {
		args = append(args, "--quota-backend-bytes="+bytesOf(q))
	}
	if o.AutoCompaction != nil {
		args = append(args, compactionArgs(o.AutoCompaction, has)...)
	}
	if n := o.SnapshotCount; n != nil {
		args = append(args, "--snapshot-count="+strconv.FormatInt(*n, 10))
	}
	if d := o.HeartbeatInterval; d != nil {
		args = append(args, "--heartbeat-interval="+milliseconds(d))
	}
	if d := o.ElectionTimeout; d != nil {
		args = append(args, "--election-timeout="+milliseconds(d))
	}
	return args
}

// compactionArgs maps automatic compaction. Before 3.3 etcd knew only a number of
// whole hours, rounded up here so that history is never dropped early; it cannot
// count revisions, and nothing is set for it then.
func compactionArgs(a *v1beta2.AutoCompaction, has features) []string {
	if has.compactionMode {
		return []string{
			"--auto-compaction-mode=" + strings.ToLower(string(a.Mode)),
			"--auto-compaction-retention=" + a.Retention,
		}
	}
	d, err := time.ParseDuration(a.Retention)
	if a.Mode != v1beta2.AutoCompactionPeriodic || err != nil || d <= 0 {
		return nil
	}
	hours := int64((d + time.Hour - 1) / time.Hour)
	return []string{"--auto-compaction-retention=" + strconv.FormatInt(hours, 10)}
}

func bytesOf(q *resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }

func milliseconds(d *v1beta2.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
