// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const storageName = "etcd-operator-storage"

// asked is how many requests a second the traffic begins at most: some hundreds while each program is disturbed. Each worker
// waits for the response before its next request, so that a machine that is slow reaches fewer.
const asked = 60

// TestHighAvailability moves the installation with a single API server to artifacts/ha of the previous
// release, as a user does. Under traffic it upgrades to this release, and restarts and kills each
// program. In the night it goes back before, also with etcd in the storage, and upgrades again. At the
// end a single API server has the objects. It is not parallel: there is one API.
func TestHighAvailability(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 20*time.Minute)
	c := s.create("steady", 3, etcdVersion)
	data := c.fill()
	uid := c.get().UID

	s.Cleanup(s.restoreSingle)
	current := s.thisRelease()
	release, err := env.LoadPrevious(s.ctx())
	s.must(err, "prepare the previous release")
	previous := s.previousRelease(release, previousVersion)
	begun := time.Now()
	s.fromSingle(previous, release)
	t.Logf("one API server became two after %v", time.Since(begun).Round(time.Second))
	if got := c.get().UID; got != uid {
		t.Fatalf("the UID of the EtcdCluster changed from %s to %s", uid, got)
	}
	s.schedule("* * * * *")
	begun = time.Now()
	objects := s.keep()
	t.Logf("the previous release created objects of each kind in %v", time.Since(begun).Round(time.Second))
	move := func(to installation) func() {
		return func() {
			s.moveTo(to)
			objects.check("after " + to.programs + " was installed")
		}
	}

	traffic, err := env.StartTraffic(s.ctx(), harness.TrafficOptions{Namespace: s.namespace, PerSecond: asked, Workers: 40, Watchers: 10})
	s.must(err, "start the traffic")
	reached := rate{}
	disturbances := []disturbance{{"upgrade of everything from the previous release", move(current), 0}}
	if harness.IsNightly() {
		disturbances = append(disturbances,
			disturbance{"return to the previous release", move(previous), 0},
			disturbance{"second upgrade", move(current), 0},
			disturbance{"rolling restart of the members of the storage", func() { s.rollout("statefulset/" + storageName) }, 0},
			disturbance{"rolling restart of the controllers", func() { s.rollout("deployment/" + harness.Controller) }, 0},
			disturbance{"deletion of an API server", func() { s.deletePod("app.kubernetes.io/name=" + harness.APIServer) }, 0},
			disturbance{"deletion of a member of the storage", func() { s.deletePod("app.kubernetes.io/name=" + storageName) }, 0})
	}
	for _, d := range append(disturbances, []disturbance{
		{"rolling restart of the API servers", func() { s.rollout("deployment/" + harness.APIServer) }, 0},
		{"kill of a controller", func() { s.killProgram(harness.Controller) }, 0},
		{"kill of a member of the storage", func() { s.killOne("app.kubernetes.io/name=" + storageName) }, 0},
		{"kill of an API server", func() { s.killProgram(harness.APIServer) }, 10 * time.Second},
	}...) {
		reached.add(s.disturb(traffic, d))
	}
	t.Logf("%.0f requests per second were reached of %d", reached.perSecond(), asked)
	s.onDifferentNodes(harness.APIServer)
	lost := s.loseNode(traffic)
	events, problems := traffic.Stop(s.within(time.Minute))
	t.Logf("%d events in each of the histories of the watchers", events)
	for _, problem := range problems[:min(10, len(problems))] {
		t.Error(problem)
	}
	s.node("start", lost)
	s.awaitNode(lost, corev1.ConditionTrue)

	s.backedUp()
	begun = time.Now()
	s.storage("to-single")
	t.Logf("two API servers became one after %v", time.Since(begun).Round(time.Second))
	if got := c.get().UID; got != uid {
		t.Errorf("the UID of the EtcdCluster changed from %s to %s", uid, got)
	}
	c.settle(3)
	c.holds(data)
}

// disturbance is what is done to the programs under traffic.
type disturbance struct {
	name string
	do   func()
	// unnoticed is how long after the disturbance a request may begin that fails: the
	// kube-apiserver sends requests to a process that was killed until its Service leads elsewhere.
	unnoticed time.Duration
}

// disturb carries out a disturbance, and fails the test if a request failed that must not.
func (s *scenario) disturb(traffic *harness.Traffic, d disturbance) harness.Phase {
	s.Helper()
	traffic.Phase()
	from := time.Now()
	d.do()
	p := traffic.Phase()
	s.Logf("%s: %v", d.name, p)
	if p.Requests == 0 {
		s.Errorf("%s: no request was sent in %v", d.name, p.Took)
	}
	for _, f := range p.Failures {
		if late := f.Begun.Sub(from); d.unnoticed == 0 || late > d.unnoticed {
			s.Errorf("%s: a request failed that was sent %v after it: %v", d.name, late.Round(time.Millisecond), f)
		}
	}
	return p
}

// storage runs artifacts/ha/storage.sh.
func (s *scenario) storage(args ...string) string {
	s.Helper()
	if revision := s.aheadOfTheClock(); revision != "" {
		s.Setenv("REVISION", revision)
	}
	out, err := s.tryStorage(s.ctx(), env.Artifact("ha", "storage.sh"), "", args...)
	s.must(err, "storage.sh %s: %s", strings.Join(args, " "), out)
	return out
}

// aheadOfTheClock returns a first revision for a storage whose own is above that of the clock, and "" for any other. The
// previous release raises the revision that it finds by 1,000,000,000.
func (s *scenario) aheadOfTheClock() string {
	list, err := env.Etcd.EtcdV1beta2().EtcdClusters(metav1.NamespaceAll).List(s.ctx(), metav1.ListOptions{Limit: 1})
	s.must(err, "read the revision of the storage")
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	s.must(err, "read the revision of the storage")
	if revision < time.Now().Unix()*10_000 { // what storage.sh uses by default
		return ""
	}
	return strconv.FormatInt(revision+1_000_000, 10)
}

// tryStorage runs storage.sh of a release for an installation, or for the artifacts beside it if that is empty.
func (s *scenario) tryStorage(ctx context.Context, script, installation string, args ...string) (string, error) {
	kubectl := env.KubectlCommand(ctx, harness.Command{})
	command := exec.CommandContext(ctx, script, args...)
	command.Dir = s.TempDir()
	command.Env = append(slices.Clone(kubectl.Env), "PATH="+filepath.Dir(kubectl.Path)+string(os.PathListSeparator)+os.Getenv("PATH"), "INSTALLATION="+installation)
	out, err := command.CombinedOutput()
	return string(out), err
}

// restoreSingle leaves a single API server behind, also if the test failed.
func (s *scenario) restoreSingle() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, err := env.Kube.AppsV1().StatefulSets(harness.SystemNamespace).Get(ctx, storageName, metav1.GetOptions{})
	if err == nil {
		if out, err := s.tryStorage(ctx, env.Artifact("ha", "storage.sh"), "", "to-single"); err != nil {
			s.Errorf("storage.sh to-single: %v: %s", err, out)
		}
	}
	if err := install(ctx, env.Artifact("install")); err != nil {
		s.Errorf("install a single API server: %v", err)
	}
	args := []string{"-n", harness.SystemNamespace, "delete", "--ignore-not-found", "pvc"}
	for _, member := range []string{"0", "1", "2"} {
		args = append(args, "data-"+storageName+"-"+member)
	}
	if _, err := env.Kubectl(ctx, harness.Command{Args: args}); err != nil {
		s.Error(err)
	}
	s.scheduleLater()
}

func (s *scenario) rollout(what string) {
	s.Helper()
	s.kubectl("-n", harness.SystemNamespace, "rollout", "restart", what)
	s.kubectl("-n", harness.SystemNamespace, "rollout", "status", what, "--timeout=150s")
}

// systemPods follows the pods of the installation with these labels.
func (s *scenario) systemPods(selector string) *harness.View[*corev1.Pod] {
	s.Helper()
	pods, err := env.Pods(s.ctx(), harness.SystemNamespace, selector)
	s.must(err, "follow pods %s", selector)
	s.Cleanup(pods.Close)
	return pods
}

// deletePod deletes one of the pods, as an eviction does, and waits until as many are ready again.
func (s *scenario) deletePod(selector string) {
	s.Helper()
	pods := s.systemPods(selector)
	list := pods.List()
	s.must(env.Kube.CoreV1().Pods(harness.SystemNamespace).Delete(s.ctx(), list[0].Name, metav1.DeleteOptions{}), "delete pod %s", list[0].Name)
	s.must(pods.Await(s.ctx(), func(now []*corev1.Pod) bool {
		return harness.AllReady(len(list))(now) && !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == list[0].UID })
	}), "another pod in the place of %s", list[0].Name)
}

// onDifferentNodes fails the test if two pods of a program are on one node, whose loss would take both.
func (s *scenario) onDifferentNodes(program string) {
	s.Helper()
	on := map[string]string{}
	for _, pod := range s.systemPods("app.kubernetes.io/name=" + program).List() {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if other := on[pod.Spec.NodeName]; other != "" {
			s.Errorf("pods %s and %s are both on node %s", other, pod.Name, pod.Spec.NodeName)
		}
		on[pod.Spec.NodeName] = pod.Name
	}
}

// killOne kills the process of one of the pods, and waits until it runs again.
func (s *scenario) killOne(selector string) {
	s.Helper()
	pods := s.systemPods(selector)
	target := pods.List()[0]
	restarts := target.Status.ContainerStatuses[0].RestartCount
	s.must(harness.Signal(target, target.Spec.Containers[0].Name, syscall.SIGKILL), "kill %s", target.Name)
	s.must(pods.Await(s.ctx(), func(now []*corev1.Pod) bool {
		return slices.ContainsFunc(now, func(p *corev1.Pod) bool {
			return p.UID == target.UID && harness.IsPodReady(p) && p.Status.ContainerStatuses[0].RestartCount > restarts
		})
	}), "%s to be restarted", target.Name)
}

// loseNode kills a node with an API server and a member of the storage, and returns it. The
// kube-apiserver sends requests to the API server on it until Kubernetes has noticed.
func (s *scenario) loseNode(traffic *harness.Traffic) string {
	s.Helper()
	const noticed, settled = 75 * time.Second, 20 * time.Second
	servers := s.systemPods("app.kubernetes.io/name=" + harness.APIServer).List()
	lost := servers[0].Spec.NodeName
	traffic.Phase()
	from := time.Now()
	s.node("kill", lost)
	s.awaitNode(lost, corev1.ConditionUnknown)
	s.Logf("Kubernetes noticed after %v that node %s is lost", time.Since(from).Round(time.Second), lost)
	s.must(waitFor(s.ctx(), time.Until(from.Add(noticed))), "wait for requests under way")
	p := traffic.Phase()
	s.Logf("node lost: %v", p)
	if p.Requests == 0 {
		s.Errorf("no request was sent in the %v after the node was lost", p.Took)
	}
	last := time.Duration(0)
	for _, f := range p.Failures {
		last = max(last, f.Begun.Sub(from))
	}
	if n := len(p.Failures); n > 0 {
		s.Logf("the last request that failed was sent %v after the loss; such as %v", last.Round(time.Millisecond), p.Failures[n/2])
	}
	s.must(waitFor(s.ctx(), settled), "watch the traffic")
	if p := traffic.Phase(); len(p.Failures) > 0 || p.Requests == 0 {
		s.Errorf("%v after the node was lost: %v, such as %v", noticed, p, p.Failures[:min(5, len(p.Failures))])
	}
	return lost
}

// waitFor returns when the time is over; the time is what is measured.
func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// backedUp waits for a scheduled backup of the storage, and restores the newest one.
func (s *scenario) backedUp() {
	s.Helper()
	s.awaitStorageBackup(time.Now())
	file := filepath.Join(s.TempDir(), "newest.db")
	s.storage("backup", file)
	s.storage("restore", file)
}
