// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const exampleName = "example-etcd-cluster"

// TestCreate applies the example and looks at every object that it leads to.
func TestCreate(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster(exampleName)
	s.kubectl("apply", "-f", env.Artifact("examples", "example-etcd-cluster.yaml"))
	object := c.settle(3)

	for name, check := range map[string]func(*cluster, *v1beta2.EtcdCluster){
		"status": checkStatus, "conditions": checkConditions, "pods": checkPods, "services": checkServices,
		"budget": checkBudget, "columns": checkColumns, "events": checkEvents, "client": checkClientPod,
	} {
		t.Run(name, func(t *testing.T) {
			inner := *c
			inner.scenario = s.in(t)
			check(&inner, object)
		})
	}
}

// checkStatus reads the status when it names the present leader: etcd may elect meanwhile, and a member may respond late.
func checkStatus(c *cluster, _ *v1beta2.EtcdCluster) {
	ids := c.ids()
	var object *v1beta2.EtcdCluster
	var leader harness.Response
	c.until(c.within(noticeWithin), "a settled status that names the leader", func() bool {
		object, leader = c.get(), c.leader()
		return isSettled(object, 3) && object.Status.Leader == leader.Pod.Name
	})
	status := &object.Status
	for what, ok := range map[string]bool{
		"phase":              status.Phase == v1beta2.ClusterPhaseRunning,
		"reason":             status.Reason == "",
		"size":               status.Replicas == 3,
		"serviceName":        status.ServiceName == exampleName+"-client",
		"clientPort":         status.ClientPort == 2379,
		"ready members":      len(status.Members.Ready) == 3 && slices.IsSorted(status.Members.Ready),
		"unready members":    len(status.Members.Unready) == 0,
		"currentVersion":     status.CurrentVersion == etcdVersion,
		"targetVersion":      status.TargetVersion == "",
		"observedGeneration": status.ObservedGeneration == object.Generation,
		"selector":           status.Selector == "app=etcd,etcd_cluster="+exampleName,
		"leader":             status.Leader == leader.Pod.Name,
		"tolerance":          ptr.Deref(status.Tolerance, 99) == 1,
		"dbSize":             status.DBSize > 0,
		"controlPaused":      !status.ControlPaused,
		"blockedBy":          status.BlockedBy == nil,
		"member statuses":    len(status.MemberStatuses) == 3,
	} {
		if !ok {
			c.Errorf("%s is wrong in:\n%s", what, describe(object))
		}
	}
	for _, m := range status.MemberStatuses {
		role := v1beta2.MemberRoleFollower
		if m.Name == leader.Pod.Name {
			role = v1beta2.MemberRoleLeader
		}
		if m.ID != fmt.Sprintf("%x", ids[m.Name]) || m.Role != role || m.Healthy != corev1.ConditionTrue ||
			m.Version != etcdVersion || m.Pod != m.Name || m.Node == "" || m.Claim != "" || m.Reason != "" || m.DBSize == 0 {
			c.Errorf("member status %+v does not say what etcd says: ID %x, %s", m, ids[m.Name], role)
		}
	}
}

func checkConditions(c *cluster, object *v1beta2.EtcdCluster) {
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:   corev1.ConditionTrue,
		v1beta2.ClusterConditionProgressing: corev1.ConditionFalse,
		v1beta2.ClusterConditionDegraded:    corev1.ConditionFalse,
		v1beta2.ClusterConditionQuorumLost:  corev1.ConditionFalse,
		v1beta2.ClusterConditionScaling:     corev1.ConditionFalse,
		v1beta2.ClusterConditionUpgrading:   corev1.ConditionFalse,
		v1beta2.ClusterConditionPaused:      corev1.ConditionFalse,
	})
	word := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	for _, cond := range object.Status.Conditions {
		for _, at := range []string{cond.LastTransitionTime, cond.LastUpdateTime} {
			if _, err := time.Parse(time.RFC3339, at); err != nil {
				c.Errorf("condition %s: time %q: %v", cond.Type, at, err)
			}
		}
		if !word.MatchString(cond.Reason) {
			c.Errorf("condition %s: reason %q is not one word", cond.Type, cond.Reason)
		}
	}
	c.kubectl("wait", "--for=condition=Available", "etcdcluster/"+c.name, "--timeout="+noticeWithin.String())
}

func checkPods(c *cluster, object *v1beta2.EtcdCluster) {
	name := regexp.MustCompile("^" + exampleName + "-[a-z0-9]{10}$")
	seeds := 0
	for _, p := range c.members.Live() {
		if !name.MatchString(p.Name) {
			c.Errorf("pod name %s", p.Name)
		}
		for key, want := range map[string]string{"app": "etcd", "etcd_cluster": c.name, "etcd_node": p.Name, "etcd_role": "voter"} {
			if p.Labels[key] != want {
				c.Errorf("pod %s: label %s is %q, not %q", p.Name, key, p.Labels[key], want)
			}
		}
		if p.Annotations["etcd.version"] != etcdVersion {
			c.Errorf("pod %s: annotation etcd.version is %q", p.Name, p.Annotations["etcd.version"])
		}
		if !metav1.IsControlledBy(p, object) {
			c.Errorf("pod %s is owned by %+v", p.Name, p.OwnerReferences)
		}
		args := p.Spec.Containers[0].Command
		c.contains(strings.Join(args, "\n"),
			"/usr/local/bin/etcd", "--data-dir=/var/etcd/data", "--name="+p.Name,
			fmt.Sprintf("--initial-advertise-peer-urls=http://%s.%s.%s.svc:2380", p.Name, c.name, c.namespace),
			fmt.Sprintf("--advertise-client-urls=http://%s.%s.%s.svc:2379", p.Name, c.name, c.namespace),
			"--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379")
		if token := flagOf(args, "initial-cluster-token"); token != "" {
			seeds++
			if token != string(object.UID) {
				c.Errorf("the seed's token is %q, not the UID %s", token, object.UID)
			}
		}
		// A member that has joined finds no member to join if it loses its data.
		alone := fmt.Sprintf("%s=http://%s.%s.%s.svc:2380", p.Name, p.Name, c.name, c.namespace)
		if joins := p.Annotations[initialCluster]; joins != alone || p.Annotations[initialState] != "existing" {
			c.Errorf("pod %s would begin again as one of %q, %s", p.Name, joins, p.Annotations[initialState])
		}
	}
	if seeds != 1 {
		c.Errorf("%d seeds, not one", seeds)
	}
}

// The annotations with the flags that etcd in a pod gets for the case that it has no data.
const (
	initialCluster = "etcd.database.coreos.com/initial-cluster"
	initialState   = "etcd.database.coreos.com/initial-cluster-state"
)

// flagOf returns the value of a flag on a command line, or "".
func flagOf(args []string, name string) string {
	for _, a := range args {
		if value, found := strings.CutPrefix(a, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

func checkServices(c *cluster, object *v1beta2.EtcdCluster) {
	services := env.Kube.CoreV1().Services(c.namespace)
	peer, err := services.Get(c.ctx(), c.name, metav1.GetOptions{})
	c.must(err, "read the headless Service")
	client, err := services.Get(c.ctx(), c.name+"-client", metav1.GetOptions{})
	c.must(err, "read the client Service")
	for _, svc := range []*corev1.Service{peer, client} {
		if !resources.Owns(object, svc) || svc.Spec.Selector["app"] != "etcd" || svc.Spec.Selector["etcd_cluster"] != c.name ||
			svc.Labels["etcd_cluster"] != c.name {
			c.Errorf("service %s: %+v", svc.Name, svc)
		}
	}
	if peer.Spec.ClusterIP != corev1.ClusterIPNone || !peer.Spec.PublishNotReadyAddresses || ports(peer) != "client:2379 peer:2380" {
		c.Errorf("service %s: %+v", peer.Name, peer.Spec)
	}
	if client.Spec.ClusterIP == corev1.ClusterIPNone || client.Spec.PublishNotReadyAddresses || ports(client) != "client:2379" {
		c.Errorf("service %s: %+v", client.Name, client.Spec)
	}
}

func ports(svc *corev1.Service) string {
	var list []string
	for _, p := range svc.Spec.Ports {
		list = append(list, fmt.Sprintf("%s:%d", p.Name, p.Port))
	}
	return strings.Join(list, " ")
}

func checkBudget(c *cluster, object *v1beta2.EtcdCluster) {
	budget := c.budget()
	if !metav1.IsControlledBy(budget, object) || budget.Spec.MinAvailable.IntValue() != 2 {
		c.Errorf("pod disruption budget: %+v", budget)
	}
}

func (c *cluster) budget() *policyv1.PodDisruptionBudget {
	c.Helper()
	budget, err := env.Kube.PolicyV1().PodDisruptionBudgets(c.namespace).Get(c.ctx(), c.name, metav1.GetOptions{})
	c.must(err, "the pod disruption budget")
	return budget
}

// checkColumns reads the row and the status until both are of the same moment: etcd may elect meanwhile, and a member may
// respond late.
func checkColumns(c *cluster, _ *v1beta2.EtcdCluster) {
	var rows, want []string
	matches := met(c.within(noticeWithin), func() bool {
		rows = strings.Split(c.kubectl("get", "etcd", "--all-namespaces"), "\n")
		want = []string{c.namespace, c.name, "3", "3/3", "1", c.get().Status.Leader, etcdVersion}
		return slices.ContainsFunc(rows, func(row string) bool {
			cells := strings.Fields(row)
			return len(cells) >= 10 && slices.Equal(cells[:7], want) && cells[9] == "Running"
		})
	})
	if got, columns := strings.Fields(rows[0]), "NAMESPACE NAME SIZE READY TOLERANCE LEADER VERSION DB LAST-BACKUP PHASE AGE"; strings.Join(got, " ") != columns {
		c.Errorf("columns are %v, not %s", got, columns)
	}
	if !matches {
		c.Errorf("no row begins with %q and has the phase Running in:\n%s", want, strings.Join(rows, "\n"))
	}
}

func checkEvents(c *cluster, _ *v1beta2.EtcdCluster) {
	count := map[string]int{}
	for _, reason := range c.reasons() {
		count[reason]++
	}
	if count["ClusterStarted"] != 1 || count["MemberAdded"] != 2 || count["MemberPromoted"] != 2 ||
		count["MemberRemoved"] != 0 || count["MemberLost"] != 0 || count["QuorumLost"] != 0 {
		c.Errorf("events: %v", count)
	}
}

// checkClientPod writes and reads as a program in the cluster does: through the
// client Service, by its name.
func checkClientPod(c *cluster, _ *v1beta2.EtcdCluster) {
	c.clientPod("client")
	endpoint := "--endpoints=http://" + c.name + "-client:2379"
	c.contains(c.kubectl("exec", "client", "--", "etcdctl", endpoint, "put", "greeting", "hello from a pod"), "OK")
	got := c.kubectl("exec", "client", "--", "etcdctl", endpoint, "get", "greeting", "--print-value-only")
	if strings.TrimSpace(got) != "hello from a pod" {
		c.Errorf("read %q", got)
	}
	c.must(c.members.Each(c.ctx(), readsGreeting), "read what the pod wrote")
}

// clientPod runs a pod with etcdctl that stays until the test ends.
func (s *scenario) clientPod(name string) {
	s.Helper()
	s.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: client
    image: quay.io/coreos/etcd:v%s
    # It stays by watching a key that is never written, in an etcd that is not there.
    command: [etcdctl, "--endpoints=http://127.0.0.1:2379", watch, nothing]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, name, etcdVersion))
	s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=2m")
}

func readsGreeting(ctx context.Context, _ *corev1.Pod, client *clientv3.Client) error {
	r, err := client.Get(ctx, "greeting")
	if err != nil {
		return err
	}
	if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != "hello from a pod" {
		return fmt.Errorf("it holds %v", r.Kvs)
	}
	return nil
}
