// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/options"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/ui"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// startAPIServer starts the real API server in this process. It has no kube-apiserver, so it
// authorizes every request and cannot probe members.
func startAPIServer(t *testing.T) func(*connect.Flags) (*connect.Clients, error) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	storage, err := embeddedetcd.Start(t.Context(), t.TempDir())
	must(err)
	t.Cleanup(storage.Stop)
	o, err := options.New()
	must(err)
	sets := cliflag.NamedFlagSets{}
	o.AddFlags(&sets)
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	must(all.Parse([]string{"--etcd-servers=" + storage.Endpoint(), "--shutdown-delay-duration=0s", "--bind-address=127.0.0.1"}))
	o.Recommended.CoreAPI, o.Recommended.Authentication, o.Recommended.Authorization, o.Recommended.Admission = nil, nil, nil, nil
	o.Recommended.Features.EnablePriorityAndFairness = false
	o.Recommended.SecureServing.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(err)
	must(o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil))
	config, err := o.Config(nil)
	must(err)
	server, err := config.Complete().New()
	must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Generic.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func(*connect.Flags) (*connect.Clients, error) {
		return connect.New(config.Generic.LoopbackClientConfig, plugintest.Namespace)
	}
}

// TestRealAPIServer sends the requests of the commands to the real API server: what it
// rejects, what a dry run leaves, and what it stores.
func TestRealAPIServer(t *testing.T) {
	connected := startAPIServer(t)
	clients, err := connected(nil)
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.Etcd.EtcdV1beta2().EtcdClusters(plugintest.Namespace)
	run := func(code failure.Code, line string, want ...string) {
		t.Helper()
		p := newTerminal(t, plugintest.New(t), false)
		p.Connect, p.Every = connected, 5*time.Millisecond
		p.expect(p.run(strings.Fields(line)...), code, want...)
	}
	run(failure.CodeDone, "check api --timeout=1m", "Kubernetes serves etcd.database.coreos.com/v1beta2")
	run(failure.CodeNotFound, "status main", "not found")
	state := plugintest.Healthy()
	state.Cluster.ResourceVersion, state.Cluster.UID = "", ""
	state.Cluster.Spec.Pod = &v1beta2.PodPolicy{}
	state.Cluster.Spec.Backup, state.Cluster.Spec.TLS = nil, nil
	created, err := clusters.Create(t.Context(), state.Cluster, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status = state.Cluster.Status
	created.Status.ObservedGeneration = created.Generation
	if _, err := clusters.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := *created.Spec.DeepCopy()

	run(failure.CodeDone, "status", "prod/main  Healthy  (by the status; the members were not probed)")
	run(failure.CodeDone, "restart main --dry-run", "Restart of prod/main: all members.")
	run(failure.CodeDone, "defrag main main-f9x4 --dry-run", "Defragmentation of prod/main: main-f9x4.")
	run(failure.CodeDone, "replace main main-f9x4 --dry-run", "member main-f9x4")
	run(failure.CodeFailed, "replace main none --dry-run", "spec.members[0]")
	run(failure.CodeFailed, "recover main --dry-run", "the quorum is not known to be lost")
	run(failure.CodeFailed, "restore main --dry-run", "spec")
	run(failure.CodeFailed, "backup main --dry-run", "neither the request nor spec.backup of the EtcdCluster names a backup location")
	run(failure.CodeFailed, "hibernate main --dry-run", "volume")
	run(failure.CodeDone, "upgrade main 3.6.18 --dry-run", "Upgrade of prod/main: from etcd 3.6.16 to 3.6.18.")
	run(failure.CodeFailed, "upgrade main 3.4.0 --dry-run", "spec.version")
	run(failure.CodeFailed, "snapshot save main "+t.TempDir()+"/x.db", "has no access to a kube-apiserver")
	run(failure.CodeDone, "conn main", "http://main-client.prod.svc:2379")
	page := &ui.Source{Clients: clients, Namespace: plugintest.Namespace, Clock: clock.RealClock{}, Every: time.Hour}
	if view, err := page.View(t.Context()); err != nil || view.Problem != "" || len(view.Clusters) != 1 || !slices.Contains(view.Backups.Columns, "LAST-SUCCESS") || !slices.Contains(view.Restores.Columns, "MESSAGE") {
		t.Errorf("%v: unexpected page %+v", err, view)
	}
	run(failure.CodeDone, "pause main --dry-run", "Pause of prod/main: ")
	run(failure.CodeNotMet, "rotate-ca main --dry-run", "spec.TLS.auto is not set")
	manifest := filepath.Join(t.TempDir(), "new.yaml")
	const location = "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdBackup\nspec: {storageType: S3, s3: {path: bucket/etcd, awsSecret: aws}}\n"
	if err := os.WriteFile(manifest, []byte(location), 0o600); err != nil {
		t.Fatal(err)
	}
	run(failure.CodeDone, "migrate snapshot new --endpoints=http://etcd-0.etcd:2379 -f "+manifest, "Migration by snapshot of http://etcd-0.etcd:2379 to EtcdCluster prod/new.", "Nothing was changed")
	run(failure.CodeFailed, "migrate snapshot new --endpoints=etcd-0.etcd -f "+manifest, "spec.etcdEndpoints[0]")
	run(failure.CodeFailed, "migrate snapshot new --size=9 --endpoints=http://etcd-0.etcd:2379 -f "+manifest, "spec.clusterTemplate.spec.size")
	stored, err := clusters.Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil || stored.Spec.Paused || stored.Status.Operation != nil || stored.Spec.Version != before.Version || ptr.Deref(stored.Spec.Replicas, 0) != 3 {
		t.Fatalf("%v: a dry run changed the cluster: %+v", err, stored)
	}

	restores := clients.Etcd.EtcdV1beta2().EtcdRestores(plugintest.Namespace)
	restore := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: "main"}, Backup: &v1beta2.BackupReference{Name: "b"},
	}}
	run(failure.CodeDone, "cancel main --yes", "No operation of prod/main is under way.")
	if _, err := restores.Create(t.Context(), restore, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run(failure.CodeFailed, "cancel main --yes", "kubectl delete etcdrestore wrong -n prod")
	if err := restores.Delete(t.Context(), "wrong", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run(failure.CodeDone, "restart main --yes --wait=false", "was requested")
	stored, err = clusters.Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil || stored.Status.Operation == nil || stored.Status.Operation.Type != v1beta2.OperationRestart {
		t.Fatalf("%v: no operation is stored: %+v", err, stored.Status.Operation)
	}
	run(failure.CodeFailed, "defrag main --yes", "is Pending; wait until status.operation shows that it has ended")
	run(failure.CodeDone, "upgrade main 3.6.18 --yes --wait=false", "was requested")
	run(failure.CodeNotMet, "check upgraded main", "spec.version is 3.6.18")

	// setStatus does what the controller does.
	setStatus := func(ctx context.Context, change func(*v1beta2.EtcdCluster) bool) error {
		return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			object, err := clusters.Get(ctx, "main", metav1.GetOptions{})
			if err != nil || !change(object) {
				return false, err
			}
			_, err = clusters.UpdateStatus(ctx, object, metav1.UpdateOptions{})
			return err == nil, nil // a conflict is tried again
		})
	}
	finish := func(kind v1beta2.OperationType) func(*v1beta2.EtcdCluster) bool {
		return func(c *v1beta2.EtcdCluster) bool {
			op := c.Status.Operation
			if op.Type != kind {
				return false
			}
			op.Phase, op.Results = v1beta2.OperationSucceeded, []v1beta2.OperationResult{{Member: "main-f9x4", State: v1beta2.OperationSucceeded, DBSizeBefore: 3 << 20, DBSizeAfter: 1 << 20}}
			return true
		}
	}
	if err := setStatus(t.Context(), finish(v1beta2.OperationRestart)); err != nil {
		t.Fatal(err)
	}
	finished := make(chan error, 1)
	go func() { finished <- setStatus(t.Context(), finish(v1beta2.OperationDefrag)) }()
	run(failure.CodeDone, "defrag main main-f9x4 --yes --timeout=1m", "Defrag of prod/main is done: 1 of 1 members are done. It gave 2.0Mi back.")
	if err := <-finished; err != nil {
		t.Fatal(err)
	}

	run(failure.CodeDone, "restart main --yes --wait=false", "was requested")
	run(failure.CodeDone, "cancel main --yes --wait=false", "Cancellation of Restart")
	run(failure.CodeDone, "pause main --yes --wait=false", "was requested")
	stored, err = clusters.Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil || !stored.Spec.Paused || stored.Annotations[resources.AnnotationCancelOperation] != stored.Status.Operation.ID {
		t.Fatalf("%v: the pause or the cancellation is not stored: %+v", err, stored)
	}

	lost := plugintest.QuorumLost()
	run(failure.CodeDone, "resume main --yes --wait=false", "was requested")
	if err := setStatus(t.Context(), func(c *v1beta2.EtcdCluster) bool {
		c.Status.Conditions, c.Status.MemberStatuses = lost.Cluster.Status.Conditions, lost.Cluster.Status.MemberStatuses
		c.Status.MemberStatuses[0].RaftIndex, c.Status.MemberStatuses[0].Reason = 90210, "NoLeader"
		return true
	}); err != nil {
		t.Fatal(err)
	}
	run(failure.CodeDone, "recover main --dry-run", "Recovery of prod/main from member main-a7k2, which has committed up to entry 90210.", "survivor main-a7k2", "replaced members: main-a7k2, main-f9x4, main-q3m8")
	run(failure.CodeUsage, "recover main", "add --yes")
	run(failure.CodeFailed, "recover main --member main-f9x4 --dry-run", "spec.member")
}
