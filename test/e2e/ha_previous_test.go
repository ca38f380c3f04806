// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// installation is artifacts/ha of a release.
type installation struct {
	// kustomization is its directory, programs the image of the operator, and storage the version
	// of etcd in the storage.
	kustomization, programs, storage string
}

// thisRelease returns artifacts/ha of this release.
func (s *scenario) thisRelease() installation {
	s.Helper()
	installed, err := env.Program(s.ctx(), harness.APIServer)
	s.must(err, "read the API server")
	return installation{env.Artifact("ha"), installed.Spec.Template.Spec.Containers[0].Image, etcdVersion}
}

// previousRelease returns a kustomization of artifacts/ha of the previous release, with its own
// programs and a version of etcd in the storage.
func (s *scenario) previousRelease(release harness.PreviousRelease, storage string) installation {
	s.Helper()
	own := s.TempDir()
	base, err := filepath.Rel(own, release.Artifact("ha"))
	s.must(err, "find the artifacts of the previous release")
	kustomization := fmt.Sprintf("resources: [%s]\nimages: [{name: %s, newTag: %s}, {name: %s, newTag: v%s}]\n",
		base, programImage, strings.TrimPrefix(release.Image, programImage+":"), etcdImage, storage)
	s.must(os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(kustomization), 0o600), "write a kustomization")
	return installation{own, release.Image, storage}
}

// fromSingle moves the single API server to artifacts/ha of the previous release, with the script
// of that release.
func (s *scenario) fromSingle(to installation, release harness.PreviousRelease) {
	s.Helper()
	out, err := s.tryStorage(s.ctx(), release.Artifact("ha", "storage.sh"), to.kustomization, "from-single")
	s.must(err, "storage.sh from-single: %s", out)
	s.runs(to)
}

// moveTo applies the installation of a release over that of another release, and waits for every program.
func (s *scenario) moveTo(to installation) {
	s.Helper()
	_, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"apply", "-k", to.kustomization}})
	s.must(err, "apply %s", to.kustomization)
	s.rolledOut()
	s.runs(to)
}

// kept is what an upgrade of the operator must leave as it is.
type kept struct {
	*scenario
	// objects are the arguments with which kubectl reads them; read is what it printed.
	objects []string
	read    []any
	// pods are the members of all EtcdClusters of the namespace.
	pods map[string]memberPod
}

// memberPod tells whether a pod was created again or restarted.
type memberPod struct {
	uid      types.UID
	restarts int32
}

// volatile are fields of a status that change without an upgrade, too: etcd elects and writes, and
// a member of a machine that is busy may be late once.
var volatile = []string{
	"resourceVersion", "managedFields", "leader", "role", "dbSize", "raftLag", "raftIndex",
	"message", "lastUpdateTime", "lastTransitionTime",
}

// keep has the running release create objects of each kind beside those that exist, and returns all
// of them as they read at rest.
func (s *scenario) keep() *kept {
	s.Helper()
	s.volume()
	secure := s.cluster("made-before")
	secure.secure("made-before-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("made-before", 3, etcdVersion, withAutoTLS, withVolumes))
	s.apply(backupManifest("often", "  etcdCluster: {name: steady}\n  backupPolicy: {backupIntervalInSecond: 3, maxBackups: 2}"+toVolume))
	s.apply(backupManifest("once", "  etcdCluster: {name: steady}"+toVolume))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	s.apply(restoreManifest("twin", "twin", "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	s.awaitBackup(s.ctx(), "often", "two backups", func(b *v1beta2.EtcdBackup) bool { return len(goodOnes(b)) == 2 })
	s.kubectl("patch", "etcdbackup", "often", "--type=merge", "-p", `{"spec":{"backupPolicy":{"suspend":true}}}`)
	often := s.awaitBackup(s.ctx(), "often", "rest", func(b *v1beta2.EtcdBackup) bool {
		return b.Status.ObservedGeneration == b.Generation && hasSucceeded(b) && b.Status.NextScheduleTime == nil
	})
	s.restored("twin")
	s.cluster("twin").settle(1)
	secure.settle(3)
	s.cluster("steady").await(s.ctx(), "its last backup", func(c *clusterObject) bool {
		return c.Status.LastBackup != nil && !c.Status.LastBackup.Time.Before(&often.Status.LastSuccessDate)
	})
	k := &kept{scenario: s, objects: []string{
		"etcdcluster/steady", "etcdcluster/made-before", "etcdcluster/twin", "etcdbackup/once", "etcdbackup/often", "etcdrestore/twin",
	}}
	// What follows from the last backup reaches the statuses a moment later.
	k.read = k.now()
	for changed := true; changed; {
		k.must(waitFor(k.ctx(), 3*time.Second), "read the objects again")
		now := k.now()
		changed, k.read = len(k.differences(now)) > 0, now
	}
	k.pods = k.members()
	if want := 3 + 3 + 1; len(k.pods) != want {
		s.Fatalf("%d pods of members, want %d: %v", len(k.pods), want, k.pods)
	}
	return k
}

// now reads the objects as JSON, so that fields count that this test does not know.
func (k *kept) now() []any {
	k.Helper()
	var list struct{ Items []any }
	k.must(json.Unmarshal([]byte(k.kubectl(append([]string{"get", "-o", "json"}, k.objects...)...)), &list), "read %v", k.objects)
	if len(list.Items) != len(k.objects) {
		k.Fatalf("kubectl printed %d objects for %v", len(list.Items), k.objects)
	}
	for _, item := range list.Items {
		forgetRestore(item)
	}
	return list.Items
}

// forgetRestore leaves out the annotations that name the restore of a cluster: the controller removes them once the
// cluster has served, and earlier releases kept them.
func forgetRestore(object any) {
	metadata, _ := object.(map[string]any)["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, v1beta2.AnnotationRestore)
	delete(annotations, v1beta2.AnnotationRestoreUID)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// differences returns what the objects had, and have no longer.
func (k *kept) differences(now []any) (found []string) {
	for i := range now {
		for _, difference := range harness.Lost(k.read[i], now[i], volatile...) {
			found = append(found, k.objects[i]+": "+difference)
		}
	}
	return found
}

func (k *kept) members() map[string]memberPod {
	k.Helper()
	pods, err := env.Kube.CoreV1().Pods(k.namespace).List(k.ctx(), metav1.ListOptions{LabelSelector: "app=etcd"})
	k.must(err, "list the pods of members")
	members := map[string]memberPod{}
	for i := range pods.Items {
		members[pods.Items[i].Name] = memberPod{pods.Items[i].UID, restarts(&pods.Items[i])}
	}
	return members
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		n += c.RestartCount
	}
	return n
}

// check fails the test for each pod of a member that was created again or restarted, and for each
// field of an object that is lost or has another value.
func (k *kept) check(after string) {
	k.Helper()
	differences := k.differences(k.now())
	// A status may show for a moment that a member responded late.
	for from := time.Now(); len(differences) > 0 && time.Since(from) < 20*time.Second; differences = k.differences(k.now()) {
		k.must(waitFor(k.ctx(), 500*time.Millisecond), "read the objects again")
	}
	for _, difference := range differences {
		k.Errorf("%s: %s", after, difference)
	}
	now := k.members()
	for name, was := range k.pods {
		if pod, found := now[name]; !found || pod != was {
			k.Errorf("%s: pod %s has UID %s and %d restarts, and had UID %s and %d", after, name, pod.uid, pod.restarts, was.uid, was.restarts)
		}
	}
	if len(now) != len(k.pods) {
		k.Errorf("%s: %d pods of members, and before %d", after, len(now), len(k.pods))
	}
}
