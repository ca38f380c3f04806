// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/test/fleet"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

const (
	controllerUser = "system:serviceaccount:" + namespace + ":etcd-operator-controller"

	// Variables that make the fleet larger, and the watch of it longer, for measurements.
	fleetSizeVariable = "ETCD_OPERATOR_FLEET"
	fleetRestVariable = "ETCD_OPERATOR_FLEET_REST"

	defaultFleet = 50
	defaultRest  = 35 * time.Second // two rounds of questions to each member
	// calm is what follows the last change until nothing is left to do: events are sent late.
	calm = 15 * time.Second
	// perCluster bounds the wait for each of the clusters, on any machine.
	perCluster = 2 * time.Second
	memberSize = 3
	// mostListeners is how many members have listeners of their own. Together with their connections
	// they are as many descriptors as a process may have in many places.
	mostListeners = 6000
)

// simulated is a fleet of clusters whose nodes are simulated; the rest is real.
type simulated struct {
	*testing.T
	namespace  string
	clusters   int
	etcd       *fleet.Etcd
	kubelet    *fleet.Kubelet
	controller *servers.Process
}

// TestFleet runs the program of the controller for many clusters of three and counts its
// calls: until all clusters run, at rest, and after a restart. The last part has most
// clusters unresponsive and one in need of a repair. The test prints times and asserts
// counts.
func TestFleet(t *testing.T) {
	s := newFleet(t)
	s.create()
	s.rest()
	s.restart()
	s.repairBesideSilence()
}

func newFleet(t *testing.T) *simulated {
	t.Helper()
	s := &simulated{T: t, namespace: "fleet", clusters: fromEnvironment(t, fleetSizeVariable, defaultFleet), etcd: fleet.NewEtcd()}
	t.Cleanup(s.etcd.Close)
	if memberSize*s.clusters > mostListeners {
		s.must(s.etcd.ShareSocket(t.Context()), "listen for all members")
	}
	s.must(os.MkdirAll(filepath.Join(env.dir, "fleet"), 0o700), "make a directory")
	for _, object := range []string{"00-namespace.yaml", "05-priority-class.yaml", "50-controller.yaml"} {
		_, err := env.kubectl(t.Context(), "apply", "-f", filepath.Join(env.repo, "artifacts", "install", object))
		s.must(err, "install the controller's rights")
	}
	_, err := env.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	s.must(err, "create the namespace")
	t.Cleanup(s.remove)
	// A controller-manager would make it.
	_, err = env.client.CoreV1().ServiceAccounts(s.namespace).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, AutomountServiceAccountToken: ptr.To(false),
	}, metav1.CreateOptions{})
	s.must(err, "create the service account")

	s.kubelet = fleet.NewKubelet(env.client, s.etcd, s.namespace)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.kubelet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.startController()
	return s
}

// remove deletes what other tests might take for clusters of their own.
func (s *simulated) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), testPatience+time.Duration(s.clusters)*perCluster)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	err := errors.Join(
		env.etcd.EtcdV1beta2().EtcdClusters(s.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}),
		env.client.CoreV1().Pods(s.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}))
	if err != nil {
		s.Error(err)
	}
}

func fromEnvironment(t *testing.T, name string, value int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	return value
}

func (s *simulated) must(err error, what string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func (s *simulated) startController() {
	s.Helper()
	s.build()
	s.launch()
	s.Cleanup(func() {
		if err := s.controller.Stop(syscall.SIGTERM, testPatience); err != nil {
			s.Error(err)
		}
		if s.Failed() {
			s.Logf("the controller said:\n%s", s.controller.Tail())
		}
	})
}

func (s *simulated) program() string { return filepath.Join(env.dir, "controller") }

func (s *simulated) build() {
	s.Helper()
	s.must(env.build(s.Context(), "-o", s.program(), "./cmd/controller"), "build the controller")
}

func (s *simulated) launch() {
	s.Helper()
	config, err := env.configFor(controllerUser, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	s.must(err, "make a client certificate")
	kubeconfig, err := env.writeKubeconfig("controller", config)
	s.must(err, "write a kubeconfig")
	s.controller, err = servers.Start(env.dir, "controller", s.program(),
		"--kubeconfig="+kubeconfig, "--listen-addr=127.0.0.1:0", "--agent-image=agent:1", "--namespace="+s.namespace)
	s.must(err, "start the controller")
}

// used returns the processor time and the memory that the controller has used.
func (s *simulated) used() (processor float64, mebibytes int64) {
	s.Helper()
	pid := s.controller.PID()
	processor, err := harness.ProcessorSeconds(pid)
	s.must(err, "read the processor time")
	memory, err := harness.ResidentMemory(pid)
	s.must(err, "read the memory")
	return processor, memory >> 20
}

func (s *simulated) name(i int) string { return fmt.Sprintf("c%04d", i) }

// create makes all clusters and waits until all of them run with three voters.
func (s *simulated) create() {
	s.Helper()
	from, before := time.Now(), s.asked()
	startProcessor, _ := s.used()
	quiet := rest.CopyConfig(env.admin)
	quiet.WarningHandler = rest.NoWarnings{}
	client, err := versioned.NewForConfig(quiet)
	s.must(err, "make a client")
	clusters := client.EtcdV1beta2().EtcdClusters(s.namespace)
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(8)
	for i := range s.clusters {
		group.Go(func() error {
			c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name(i)}}
			c.Spec.Replicas, c.Spec.Version = ptr.To[int32](memberSize), fleet.Version
			_, err := clusters.Create(ctx, c, metav1.CreateOptions{})
			return err
		})
	}
	s.must(group.Wait(), "create the clusters")
	created := time.Since(from)
	limit := time.Duration(s.clusters) * perCluster
	// The simulated etcd costs nothing to ask, a list of a thousand objects does.
	s.await(limit, "all members vote", func(context.Context) error {
		for i := range s.clusters {
			if _, voters := s.etcd.Size(s.namespace + "/" + s.name(i)); voters < memberSize {
				return fmt.Errorf("cluster %d has %d voters", i, voters)
			}
		}
		return nil
	})
	s.await(limit, "all clusters run", func(ctx context.Context) error {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := 0
		for i := range list.Items {
			if status := &list.Items[i].Status; status.Phase == v1beta2.ClusterPhaseRunning && len(status.Members.Ready) == memberSize {
				running++
			}
		}
		if running < s.clusters {
			return fmt.Errorf("%d of %d clusters run", running, s.clusters)
		}
		return nil
	})
	took := time.Since(from)
	processor, memory := s.used()
	requests := s.asked().since(before)
	s.Logf("%d clusters of %d: created after %.1f s, all run after %.1f s; the controller used %.1f s of a processor and takes %d MiB",
		s.clusters, memberSize, created.Seconds(), took.Seconds(), processor-startProcessor, memory)
	s.Logf("requests for each cluster: %s", requests.each(s.clusters))
	for i := range s.clusters {
		if members, voters := s.etcd.Size(s.namespace + "/" + s.name(i)); members != memberSize || voters != memberSize {
			s.Errorf("%s has %d members and %d voters", s.name(i), members, voters)
		}
	}
	if writes := requests.writes(); writes > 40*s.clusters {
		s.Errorf("%d writes for each cluster", writes/s.clusters)
	}
}

// restart ends the controller and starts a second controller, which finds nothing to do.
func (s *simulated) restart() {
	s.Helper()
	s.must(s.controller.Stop(syscall.SIGTERM, testPatience), "stop the controller")
	before, lists, was := s.asked(), s.etcd.Lists.Load(), s.list()
	from := time.Now()
	s.launch()
	s.await(testPatience, "the new controller has looked at all clusters", func(context.Context) error {
		if n := s.etcd.Lists.Load() - lists; n < int64(s.clusters) {
			return fmt.Errorf("%d member lists were read of %d clusters", n, s.clusters)
		}
		return nil
	})
	took := time.Since(from)
	s.sleep(calm)
	requests := s.asked().since(before)
	s.Logf("another controller had looked at all clusters %.1f s after its start; requests: %v", took.Seconds(), requests)
	if n := requests.writes(); n != 0 {
		s.Errorf("it wrote %d times, and nothing was to be done:\n%s", n, cmp.Diff(was, s.list()))
	}
}

// list returns the status of each cluster by its name.
func (s *simulated) list() map[string]v1beta2.ClusterStatus {
	s.Helper()
	list, err := env.etcd.EtcdV1beta2().EtcdClusters(s.namespace).List(s.Context(), metav1.ListOptions{})
	s.must(err, "list the clusters")
	statuses := make(map[string]v1beta2.ClusterStatus, len(list.Items))
	for i := range list.Items {
		statuses[list.Items[i].Name] = list.Items[i].Status
	}
	return statuses
}

// repairBesideSilence makes up to a hundred clusters unresponsive, and has another cluster
// lose a member. If waits blocked the workers, the unresponsive clusters would take all of
// them.
func (s *simulated) repairBesideSilence() {
	s.Helper()
	pods, err := env.client.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=etcd"})
	s.must(err, "list the pods")
	unresponsive := min(100, s.clusters-1)
	for i := range pods.Items {
		var n int
		_, err := fmt.Sscanf(pods.Items[i].Labels["etcd_cluster"], "c%d", &n)
		s.must(err, "read the name of a cluster")
		if n > 0 && n <= unresponsive {
			s.must(s.etcd.Silence(s.kubelet.Address(pods.Items[i].Name)), "silence a member")
		}
	}
	s.await(testPatience, "the unresponsive clusters are noticed", func(ctx context.Context) error {
		list, err := env.etcd.EtcdV1beta2().EtcdClusters(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		lost := 0
		for i := range list.Items {
			for _, condition := range list.Items[i].Status.Conditions {
				if condition.Type == v1beta2.ClusterConditionAvailable && condition.Status != corev1.ConditionTrue {
					lost++
				}
			}
		}
		if lost < unresponsive {
			return fmt.Errorf("%d of %d unresponsive clusters are not called available", lost, unresponsive)
		}
		return nil
	})
	for i := range pods.Items {
		if pods.Items[i].Labels["etcd_cluster"] != s.name(0) {
			continue
		}
		before := s.etcd.Changes.Load()
		from := time.Now()
		s.must(env.client.CoreV1().Pods(s.namespace).Delete(s.Context(), pods.Items[i].Name, metav1.DeleteOptions{}), "delete a pod")
		var first time.Duration
		s.await(testPatience, "another member takes its place", func(context.Context) error {
			changes := s.etcd.Changes.Load() - before
			if changes > 0 && first == 0 {
				first = time.Since(from)
			}
			if _, voters := s.etcd.Size(s.namespace + "/" + s.name(0)); voters != memberSize || changes < 3 {
				return fmt.Errorf("%d voters, %d changes", voters, changes)
			}
			return nil
		})
		s.Logf("beside %d unresponsive clusters: the repair began after %v and was over after %v", unresponsive,
			first.Round(10*time.Millisecond), time.Since(from).Round(10*time.Millisecond))
		return
	}
	s.Fatal("the cluster has no pod")
}

func (s *simulated) await(d time.Duration, what string, f func(context.Context) error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), servers.PollInterval+time.Duration(s.clusters)*time.Millisecond, d, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	})
	s.must(errors.Join(err, last), what)
}

// sleep waits; what is examined is that nothing happens meanwhile.
func (s *simulated) sleep(d time.Duration) {
	select {
	case <-s.Context().Done():
	case <-time.After(d):
	}
}
