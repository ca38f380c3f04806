// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// runningEtcd is an etcd of three members that a StatefulSet runs. Its pods have the labels by which
// the tests find members. It has TLS. The verbs are the version and the namespace.
const runningEtcd = `apiVersion: v1
kind: Service
metadata: {name: old}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {etcd_cluster: old}
  ports: [{name: client, port: 2379}, {name: peer, port: 2380}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: old}
spec:
  serviceName: old
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {etcd_cluster: old}}
  template:
    metadata: {labels: {app: etcd, etcd_cluster: old, etcd_role: voter}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: etcd
          image: quay.io/coreos/etcd:v%[1]s
          env:
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
          command:
            - etcd
            - --name=$(POD)
            - --data-dir=/data/etcd
            - --listen-client-urls=https://0.0.0.0:2379
            - --advertise-client-urls=https://$(POD).old.%[2]s.svc:2379
            - --listen-peer-urls=https://0.0.0.0:2380
            - --initial-advertise-peer-urls=https://$(POD).old.%[2]s.svc:2380
            - --initial-cluster=old-0=https://old-0.old.%[2]s.svc:2380,old-1=https://old-1.old.%[2]s.svc:2380,old-2=https://old-2.old.%[2]s.svc:2380
            - --client-cert-auth
            - --cert-file=/tls/server/tls.crt
            - --key-file=/tls/server/tls.key
            - --trusted-ca-file=/tls/server/ca.crt
            - --peer-client-cert-auth
            - --peer-cert-file=/tls/peer/tls.crt
            - --peer-key-file=/tls/peer/tls.key
            - --peer-trusted-ca-file=/tls/peer/ca.crt
          readinessProbe: {tcpSocket: {port: 2379}, periodSeconds: 1}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: data, mountPath: /data}, {name: peer, mountPath: /tls/peer}, {name: server, mountPath: /tls/server}]
      volumes: [{name: data, emptyDir: {}}, {name: peer, secret: {secretName: ` + peerSecret + `}}, {name: server, secret: {secretName: ` + serverSecret + `}}]
`

// chartEtcd is the same without TLS in the layout of the Bitnami chart: variables instead of flags, and
// names with the domain of the cluster. Each member also advertises the Service of all. The verbs are the version and the namespace.
const chartEtcd = `apiVersion: v1
kind: Service
metadata: {name: old}
spec:
  selector: {etcd_cluster: old}
  ports: [{name: client, port: 2379}]
---
apiVersion: v1
kind: Service
metadata: {name: old-headless}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {etcd_cluster: old}
  ports: [{name: client, port: 2379}, {name: peer, port: 2380}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: old}
spec:
  serviceName: old-headless
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {etcd_cluster: old}}
  template:
    metadata: {labels: {app: etcd, etcd_cluster: old, etcd_role: voter}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: etcd
          image: quay.io/coreos/etcd:v%[1]s
          command: [etcd]
          env:
            - {name: MY_POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: ETCD_NAME, value: $(MY_POD_NAME)}
            - {name: ETCD_DATA_DIR, value: /data/etcd}
            - name: ETCD_ADVERTISE_CLIENT_URLS
              value: http://$(MY_POD_NAME).old-headless.%[2]s.svc.cluster.local:2379,http://old.%[2]s.svc.cluster.local:2379
            - {name: ETCD_LISTEN_CLIENT_URLS, value: "http://0.0.0.0:2379"}
            - {name: ETCD_INITIAL_ADVERTISE_PEER_URLS, value: "http://$(MY_POD_NAME).old-headless.%[2]s.svc.cluster.local:2380"}
            - {name: ETCD_LISTEN_PEER_URLS, value: "http://0.0.0.0:2380"}
            - {name: ETCD_INITIAL_CLUSTER_TOKEN, value: etcd-cluster-k8s}
            - {name: ETCD_INITIAL_CLUSTER_STATE, value: new}
            - name: ETCD_INITIAL_CLUSTER
              value: old-0=http://old-0.old-headless.%[2]s.svc.cluster.local:2380,old-1=http://old-1.old-headless.%[2]s.svc.cluster.local:2380,old-2=http://old-2.old-headless.%[2]s.svc.cluster.local:2380
          readinessProbe: {tcpSocket: {port: 2379}, periodSeconds: 1}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`

// taking is a cluster that takes over a running etcd, and a writer that writes all the time.
type taking struct {
	*scenario
	old, own *cluster
	data     harness.Data
	writer   *harness.Writer
	before   harness.Response
}

func (s *scenario) running(manifest string) {
	s.Helper()
	s.apply(manifest)
	s.kubectl("rollout", "status", "statefulset/old", "--timeout=2m")
}

// begin fills the running etcd and starts to write to it.
func (s *scenario) begin(old *cluster) *taking {
	s.Helper()
	c := &taking{scenario: s, old: old, own: s.cluster("joined")}
	c.own.members.TLS = old.members.TLS
	c.data = old.fill()
	c.before, c.writer = old.leader(), old.write()
	return c
}

// joined checks the state in which all members vote and the old ones are kept. Then the writer
// moves to the new members, as applications do.
func (c *taking) joined() {
	c.Helper()
	object := c.own.await(c.ctx(), "all members beside the old ones", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionReady, corev1.ConditionTrue)
	})
	if got := condition(object, v1beta2.ClusterConditionReady); got.Reason != "OldMembersKept" || object.Status.Replicas != 3 || len(object.Status.MemberStatuses) != 6 {
		c.Errorf("Ready says %s, and the status counts %d of %d members", got.Reason, object.Status.Replicas, len(object.Status.MemberStatuses))
	}
	c.own.holds(c.data)
	moved := c.own.write()
	report := c.old.stopped(c.writer)
	if report.Failed > 0 && c.old.leader().Term == c.before.Term { // otherwise etcd has elected by itself, as on a busy disk
		c.Errorf("while members joined, %d of %d writes failed: %v", report.Failed, report.Sent, report.Errors)
	}
	c.must(c.own.members.Kept(c.ctx(), report), "the new members")
	c.writer = moved
}

// taken checks the state without the old members, and that every acknowledged write is there.
func (c *taking) taken() {
	c.Helper()
	object := c.own.settle(3)
	report := c.own.stopped(c.writer)
	c.Logf("while the leadership moved and the old members were removed: %d of %d writes failed: %v; longest gap %v", report.Failed, report.Sent, report.Errors, report.LongestGap)
	// The leader drops what it gets while it hands over. On a busy machine that takes a while.
	if time.Duration(report.Failed)*writeInterval > report.LongestGap+200*time.Millisecond {
		c.Errorf("%d of %d writes failed: more than those of one change of the leader: %v", report.Failed, report.Sent, report.Errors)
	}
	c.kubectl("delete", "statefulset/old", "--wait=true")
	c.own.holds(c.data)
	if slices.ContainsFunc(object.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged }) {
		c.Errorf("old members are left: %+v", object.Status.MemberStatuses)
	}
	reasons := c.own.reasons()
	removed := 0
	for _, reason := range reasons {
		if reason == "OldMemberRemoved" {
			removed++
		}
	}
	if removed != 3 || !slices.Contains(reasons, "ClusterStarted") {
		c.Errorf("the events are %v", reasons)
	}
}

// TestJoinExisting takes over a StatefulSet with kubectl etcd, while a writer writes. The result is
// an ordinary cluster: it scales and replaces members.
func TestJoinExisting(t *testing.T) {
	t.Parallel()
	s := startFor(t, 8*time.Minute)
	p := s.buildPlugin()
	s.running(fmt.Sprintf(chartEtcd, etcdVersion, s.namespace))
	c := s.begin(s.cluster("old"))
	endpoints := "--endpoints=http://old-0.old-headless:2379,http://old-1.old-headless:2379,http://old-2.old-headless:2379"

	join := []string{"migrate", "join", "joined", endpoints, "--version=" + etcdVersion}
	out, _ := p.run(failure.CodeDone, join...)
	s.contains(out, "Migration by joining of http://old-0", "Nothing was changed. To carry the plan out, add --yes.")
	out, _ = p.run(failure.CodeDone, append(join, "--yes", "--timeout=3m")...)
	s.contains(out, "3 members of "+s.namespace+"/joined vote. Old members beside them: old-0, old-1, old-2.")
	c.joined()
	if _, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"-n", s.namespace, "delete", "etcdcluster/joined"}}); err == nil || !strings.Contains(err.Error(), "part of the quorum of the etcd in spec.bootstrap.existing") {
		t.Errorf("the deletion beside old members was not rejected: %v", err)
	}
	out, _ = p.run(failure.CodeDone, "migrate", "finish", "joined", "--yes", "--timeout=3m")
	s.contains(out, "The old members are removed: "+s.namespace+"/joined is an ordinary cluster.")
	c.taken()

	s.kubectl("patch", "etcdcluster/joined", "--type=merge", "-p", `{"spec":{"bootstrap":null,"size":1}}`)
	c.own.settle(1)
	s.kubectl("scale", "etcd/joined", "--replicas=3")
	c.own.settle(3)
	c.own.holds(c.data)
}

// TestJoinExistingTLS does the same for an etcd with TLS, whose CA has signed the certificates of the
// new members.
func TestJoinExistingTLS(t *testing.T) {
	t.Parallel()
	s := startFor(t, 8*time.Minute)
	p := s.pki("joined", false)
	for _, name := range []string{"joined", "old"} {
		p.hosts = append(p.hosts, name+"-client."+s.namespace+".svc", "*."+name+"."+s.namespace+".svc", "*."+name+"."+s.namespace+".svc.cluster.local")
	}
	p.putAll()
	s.running(fmt.Sprintf(runningEtcd, etcdVersion, s.namespace))
	old := s.cluster("old")
	old.secure(operatorSecret, "tls.crt", "tls.key", "ca.crt")
	c := s.begin(old)
	existing := fmt.Sprintf(`
  bootstrap:
    existing:
      clientEndpoints: ["https://old-0.old.%[1]s.svc:2379"]
      tlsSecret: `+operatorSecret, s.namespace)
	s.apply(manifest("joined", 3, etcdVersion, withStaticTLS, existing))
	c.joined()
	s.apply(manifest("joined", 3, etcdVersion, withStaticTLS, existing, "\n      oldMembers: Remove"))
	c.taken()
}

// TestJoinGivenUp joins and goes back, as docs/how-to/migrate.md says: the new members are removed, the
// EtcdCluster is deleted, and the old members serve with every write.
func TestJoinGivenUp(t *testing.T) {
	t.Parallel()
	harness.RequireNightly(t)
	s := startFor(t, 8*time.Minute)
	p := s.buildPlugin()
	s.running(fmt.Sprintf(chartEtcd, etcdVersion, s.namespace))
	c := s.begin(s.cluster("old"))
	s.apply(manifest("joined", 3, etcdVersion, "", `
  bootstrap:
    existing: {clientEndpoints: ["http://old:2379"]}`)) // the Service of all members; the others are found
	object := c.own.await(s.ctx(), "all members beside the old ones", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionReady, corev1.ConditionTrue)
	})

	p.run(failure.CodeDone, "pause", "joined", "--yes")
	for _, m := range object.Status.MemberStatuses {
		if m.Unmanaged {
			continue
		}
		deadline := s.within(time.Minute) // after a change etcd takes no other one for five seconds
		for {
			_, err := env.Kubectl(deadline, harness.Command{Args: []string{"-n", s.namespace, "exec", "old-0", "--", "etcdctl", "member", "remove", m.ID}})
			if err == nil {
				break
			}
			if deadline.Err() != nil {
				t.Fatalf("remove member %s: %v", m.Name, err)
			}
		}
	}
	c.own.await(s.ctx(), "a status in which only old members serve", func(object *v1beta2.EtcdCluster) bool {
		serves := map[bool]bool{}
		for _, m := range object.Status.MemberStatuses {
			serves[m.Unmanaged] = serves[m.Unmanaged] || m.Healthy == corev1.ConditionTrue
		}
		return serves[true] && !serves[false]
	})
	s.kubectl("delete", "etcdcluster/joined", "--wait=true")
	c.own.gone("pods", "etcd_cluster=joined")
	c.must(c.old.members.AwaitVoters(s.ctx(), 3), "the old members")
	report := c.old.stopped(c.writer)
	t.Logf("%d of %d writes failed: %v; longest gap %v", report.Failed, report.Sent, report.Errors, report.LongestGap)
	c.old.holds(c.data)
}
