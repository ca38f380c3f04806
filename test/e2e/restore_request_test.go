// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// postAs sends an empty body to a subresource as another user.
func postAs[T any](c *cluster, subresource string, as ...string) *T {
	c.Helper()
	response := new(T)
	args := append([]string{"create", "--raw", c.raw(subresource), "-f", "-"}, as...)
	out, err := env.Kubectl(c.ctx(), harness.Command{Args: args, Stdin: "{}"})
	c.must(err, "post %s as %s", subresource, strings.Join(as, " "))
	c.must(json.Unmarshal([]byte(out), response), "read the response %s", out)
	return response
}

// TestRestoreSubresource: an engineer on call makes a backup, the data is spoiled, and a service
// account that may do nothing else has the cluster restored with an empty request.
func TestRestoreSubresource(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("undone", 1, etcdVersion, toVolumeOfCluster)
	data, clusterID := c.fill(), c.clusterID()
	s.kubectl("create", "serviceaccount", "senior")
	s.kubectl("create", "role", "senior", "--verb=create", "--resource=etcdclusters.etcd.database.coreos.com/restore", "--resource-name=undone")
	s.kubectl("create", "rolebinding", "senior", "--role=senior", "--serviceaccount="+s.namespace+":senior")
	senior := "--as=system:serviceaccount:" + s.namespace + ":senior"
	onCall := s.examplePeople()

	s.contains(s.rejected("{}", "create", "--raw", c.raw("restore"), "-f", "-", senior), "spec.backup", "no backup of this cluster is known", "get etcdbackups")
	made := postAs[v1beta2.EtcdBackup](c, "backup", onCall...)
	backup := s.awaitBackup(s.ctx(), made.Name, "success", hasSucceeded)
	c.spoil(data)
	c.awaitLastBackup(made.Name)
	dry := postAs[v1beta2.EtcdRestore](c, "restore?dryRun=All", senior)
	if from := dry.Spec.Backup; from == nil || from.Name != made.Name || ptr.Deref(from.Revision, 0) != backup.Status.EtcdRevision {
		t.Errorf("a dry run names %+v", dry.Spec)
	}
	s.contains(s.rejected("{}", append([]string{"create", "--raw", c.raw("restore"), "-f", "-"}, onCall...)...), "orbidden")
	if list, err := env.Etcd.EtcdV1beta2().EtcdRestores(s.namespace).List(s.ctx(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Fatalf("a dry run or a rejected request has left %+v (%v)", list, err)
	}

	asked := postAs[v1beta2.EtcdRestore](c, "restore", senior)
	s.contains(s.rejected("{}", "create", "--raw", c.raw("restore"), "-f", "-", senior), "is in progress", asked.Name)
	s.seniorIsBounded(c, senior)
	s.contains(s.kubectl(append([]string{"get", "etcdrestore", asked.Name}, onCall...)...), asked.Name, "undone", fmt.Sprintf("etcdbackup/%s@%d", made.Name, backup.Status.EtcdRevision))
	r := s.restored(asked.Name)
	c.settle(1)
	c.holds(data)
	if got := c.read("data/more"); len(got.Kvs) != 0 || got.Header.Revision < r.Status.Revision+revisionBump || r.Status.Revision != backup.Status.EtcdRevision {
		t.Errorf("revision %d was stored and %d restored; then %+v", backup.Status.EtcdRevision, r.Status.Revision, got)
	}
	if c.clusterID() == clusterID {
		t.Error("the cluster ID is the one before")
	}
	copied := r.Status.PreRestoreBackup
	if copied == nil || copied.Revision <= r.Status.Revision {
		t.Fatalf("the pre-restore backup is %+v", copied)
	}
	safety := s.awaitBackup(s.ctx(), copied.Backup, "success", hasSucceeded)
	s.must(s.checkStored(safety.Status.URI), "the pre-restore backup")
	c.lostAndRestored(made.Name)
	c.holds(data)
}

// awaitLastBackup waits until the status reports the backup that a restore without a source takes.
func (c *cluster) awaitLastBackup(name string) {
	c.Helper()
	c.await(c.ctx(), "its last backup", func(object *clusterObject) bool {
		return object.Status.LastBackup != nil && object.Status.LastBackup.Name == name
	})
}

// lostAndRestored takes everything from a cluster and types what /health says then.
func (c *cluster) lostAndRestored(backup string) {
	c.Helper()
	for _, p := range c.members.Live() {
		c.kubectl("delete", "pod", p.Name, "--force", "--grace-period=0")
	}
	c.await(c.within(time.Minute), "the status to report the loss", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	})
	steps := c.awaitVerdict(v1beta2.VerdictQuorumLost).NextSteps
	i := slices.IndexFunc(steps, func(n v1beta2.NextStep) bool { return strings.Contains(n.Command, "/restore?dryRun=All'") })
	if i < 0 {
		c.Fatalf("health does not say what to do: %+v", steps)
	}
	c.contains(c.typed(steps[i].Command), `"name":"`+backup+`"`, "Warning: The cluster is restored from EtcdBackup "+backup)
	_, out, _ := strings.Cut(c.typed(strings.Replace(steps[i].Command, "?dryRun=All", "", 1)), "\n")
	var asked v1beta2.EtcdRestore
	c.must(json.Unmarshal([]byte(out), &asked), "read the response %s", out)
	if r := c.restored(asked.Name); r.Status.PreRestoreBackup != nil {
		c.Errorf("there was no member to back up: %+v", r.Status.PreRestoreBackup)
	}
	c.settle(1)
}

// examplePeople applies the published roles and returns the kubectl flags that make a request
// that of an engineer on call.
func (s *scenario) examplePeople() []string {
	s.Helper()
	text, err := os.ReadFile(env.Artifact("examples", "on-call-roles.yaml"))
	s.must(err, "read the example")
	s.apply(string(text))
	onCall, senior := []string{"--as=jo", "--as-group=etcd-on-call"}, []string{"--as=sam", "--as-group=etcd-senior"}
	for _, test := range []struct {
		as             []string
		verb, resource string
		may            bool
	}{
		{onCall, "get", "etcdclusters/health", true},
		{onCall, "create", "etcdclusters/backup", true},
		{onCall, "create", "etcdclusters/restore", false},
		{onCall, "delete", "etcdrestores", false},
		{senior, "create", "etcdclusters/backup", true},
		{senior, "create", "etcdclusters/restore", true},
		{senior, "delete", "etcdrestores", true},
		{senior, "create", "etcdrestores", false},
		{senior, "update", "etcdclusters", false},
		{senior, "create", "etcdclusters/recover", false},
	} {
		resource, subresource, _ := strings.Cut(test.resource, "/")
		args := append([]string{"-n", s.namespace, "auth", "can-i", test.verb, resource + ".etcd.database.coreos.com", "--subresource=" + subresource}, test.as...)
		out, err := env.Kubectl(s.ctx(), harness.Command{Args: args})
		if may := err == nil && strings.TrimSpace(out) == "yes"; may != test.may {
			s.Errorf("%v may %s %s: %q %v", test.as, test.verb, test.resource, out, err)
		}
	}
	return onCall
}

// seniorIsBounded tries what the right to restore does not include.
func (s *scenario) seniorIsBounded(c *cluster, as string) {
	s.Helper()
	another := strings.Replace(c.raw("restore"), "/"+c.name+"/", "/another/", 1)
	for _, args := range [][]string{
		{"get", "etcdclusters"}, {"get", "etcdrestores"}, {"get", "etcdbackups"}, {"get", "secrets"},
		{"delete", "etcdrestores", "--all"}, {"delete", "etcdcluster", c.name},
		{"create", "--raw", c.raw("backup"), "-f", "/dev/null"}, {"create", "--raw", another, "-f", "/dev/null"},
	} {
		s.contains(s.rejected("", append(args, as)...), "orbidden")
	}
	s.contains(s.rejected(restoreManifest("mine", c.name, "  backup: {name: any}"), "create", "-f", "-", as), "orbidden")
}
