// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPublishedManifests applies and creates the manifests that guides for
// etcd-operator have always shown, unchanged, and finds every field again.
func TestPublishedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(env.Artifact("examples", "compat", "*.yaml"))
	if err != nil || len(files) < 9 {
		t.Fatalf("the published manifests are not there: %v, %v", files, err)
	}
	s := start(t)
	for _, file := range files {
		for _, verb := range []string{"create", "apply"} {
			s.kubectl(verb, "-f", file)
			checkKept(s, file)
			s.kubectl("delete", "-f", file, "--wait")
		}
	}
}

// checkKept compares what the API server gives back with the file.
func checkKept(s *scenario, file string) {
	s.Helper()
	text, err := os.ReadFile(file)
	s.must(err, "read")
	var wrote, got map[string]any
	s.must(yaml.Unmarshal(text, &wrote), "parse %s", file)
	s.must(json.Unmarshal([]byte(s.kubectl("get", "-f", file, "-o", "json")), &got), "parse the response for %s", file)
	for _, lost := range missing("", wrote, got) {
		s.Errorf("%s: %s", filepath.Base(file), lost)
	}
}

// missing lists the values of wrote that are not in got.
func missing(path string, wrote, got any) []string {
	object, isObject := wrote.(map[string]any)
	if !isObject {
		if reflect.DeepEqual(wrote, got) {
			return nil
		}
		return []string{fmt.Sprintf("%s was %v and is %v", path, wrote, got)}
	}
	other, _ := got.(map[string]any)
	var lost []string
	for key, value := range object {
		lost = append(lost, missing(path+"."+key, value, other[key])...)
	}
	return lost
}

// TestPublishedCluster runs the oldest of the published clusters as far as it goes
// without its image, and corrects its version as the guides do.
func TestPublishedCluster(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster(exampleName)
	s.kubectl("create", "-f", env.Artifact("examples", "compat", "cluster-example.yaml"))
	object := c.await(s.ctx(), "a truthful status without an image", func(object *v1beta2.EtcdCluster) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == "ImageNotPulled" && strings.Contains(b.Message, "image quay.io/coreos/etcd:v3.2.13 cannot be pulled")
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:   corev1.ConditionFalse,
		v1beta2.ClusterConditionProgressing: corev1.ConditionTrue,
		v1beta2.ClusterConditionQuorumLost:  corev1.ConditionFalse,
	})
	if object.Status.Phase != v1beta2.ClusterPhaseCreating {
		t.Errorf("phase is %q, not Creating", object.Status.Phase)
	}
	live := slices.DeleteFunc(c.members.Live(), func(p *corev1.Pod) bool { return resources.IsPrepared(p.Annotations) })
	if len(live) != 1 {
		t.Fatalf("%d pods without those that wait for their members, not the bootstrap member alone", len(live))
	}
	seed := live[0]
	url := fmt.Sprintf("http://%s.%s.%s.svc", seed.Name, exampleName, s.namespace)
	want := []string{
		"/usr/local/bin/etcd",
		"--data-dir=/var/etcd/data",
		"--name=" + seed.Name,
		"--initial-advertise-peer-urls=" + url + ":2380",
		"--listen-peer-urls=http://0.0.0.0:2380",
		"--listen-client-urls=http://0.0.0.0:2379",
		"--advertise-client-urls=" + url + ":2379",
		"--initial-cluster-token=" + string(object.UID),
	}
	if got := seed.Spec.Containers[0].Command; !reflect.DeepEqual(got, want) {
		t.Errorf("the seed runs\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if joins := seed.Annotations[initialCluster]; joins != seed.Name+"="+url+":2380" || seed.Annotations[initialState] != "new" {
		t.Errorf("the seed starts %q, %s", joins, seed.Annotations[initialState])
	}
	if image := seed.Spec.Containers[0].Image; image != "quay.io/coreos/etcd:v3.2.13" {
		t.Errorf("the seed's image is %s", image)
	}

	patch, err := os.ReadFile(env.Artifact("examples", "compat", "upgrade-patch.txt"))
	s.must(err, "read the patch")
	s.kubectl("patch", "etcdcluster", exampleName, "--type=json", "-p", strings.TrimSpace(string(patch)))
	if version := c.get().Spec.Version; version != "3.3.12" {
		t.Errorf("the unquoted patch made the version %q", version)
	}
}

// TestInvalidVersionCorrected creates a cluster with a version that has no image. The status names the image
// and the command that corrects it. Nothing is lost, so another version must be all that it takes.
func TestInvalidVersionCorrected(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("typo")
	s.apply(manifest("typo", 3, "3.6.99"))
	c.await(s.within(30*time.Second), "the seed to miss its image", func(object *v1beta2.EtcdCluster) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == "ImageNotPulled" && strings.Contains(b.Message, ":v3.6.99 cannot be pulled") &&
			strings.Contains(b.Unblock, "kubectl patch etcdcluster typo -n "+s.namespace)
	})
	s.kubectl(patchVersion("typo", etcdVersion)...)
	c.settle(3)
}
