// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// placed sets what a pod policy can say about where and how pods run, in addition to what
// declaration changes.
const placed = `
  pod:
    labels: {team: storage}
    annotations: {example.com/note: kept}
    nodeSelector: {kubernetes.io/os: linux}
    tolerations: [{key: dedicated, operator: Equal, value: etcd, effect: NoSchedule}]
    etcdEnv: [{name: GOGC, value: "50"}]
    securityContext: {runAsUser: 9000, supplementalGroups: [9001]}
    containerSecurityContext: {readOnlyRootFilesystem: true}
    terminationGracePeriodSeconds: 20
    priorityClassName: system-cluster-critical
    imagePullPolicy: Never
    imagePullSecrets: [{name: registry}]
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 7
          preference: {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {etcd_cluster: placed}}}
    ClusterDomain: .cluster.local
    busyboxImage: busybox:1.28.0-glibc
    DNSTimeoutInSecond: 30
    topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: DoNotSchedule
      labelSelector: {matchLabels: {etcd_cluster: placed}}`

// TestPlacement runs a cluster with a whole pod policy in a namespace that takes only
// restricted pods, and has it replace a member.
func TestPlacement(t *testing.T) {
	t.Parallel()
	needNodes(t, 3)
	s := start(t)
	s.kubectl("create", "secret", "docker-registry", "registry", "--docker-server=registry.example.com", "--docker-username=u", "--docker-password=p")
	c := s.create("placed", 3, etcdVersion, placed)
	data := c.fill()
	c.arePlaced()
	target := c.follower().Pod
	s.kubectl("delete", "pod", target.Name, "--wait=false")
	c.rolled(3, func(p *corev1.Pod) bool { return p.UID != target.UID })
	c.arePlaced()
	c.holds(data)
}

// arePlaced looks at the pods as Kubernetes runs them.
func (c *cluster) arePlaced() {
	c.Helper()
	if used := c.nodes(); len(used) != 3 {
		c.Errorf("the members are on the nodes %v", used)
	}
	for _, p := range c.members.Live() {
		ctr, nodes, others := p.Spec.Containers[0], p.Spec.Affinity.NodeAffinity, p.Spec.Affinity.PodAntiAffinity
		for what, right := range map[string]bool{
			"labels":             p.Labels["team"] == "storage" && p.Labels["etcd_cluster"] == "placed",
			"annotations":        p.Annotations["example.com/note"] == "kept",
			"node selector":      p.Spec.NodeSelector["kubernetes.io/os"] == "linux",
			"tolerations":        slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "dedicated" }),
			"environment":        slices.Contains(ctr.Env, corev1.EnvVar{Name: "GOGC", Value: "50"}),
			"user":               *p.Spec.SecurityContext.RunAsUser == 9000 && slices.Contains(p.Spec.SecurityContext.SupplementalGroups, 9001),
			"still restricted":   *p.Spec.SecurityContext.RunAsNonRoot && !*ctr.SecurityContext.AllowPrivilegeEscalation,
			"grace period":       *p.Spec.TerminationGracePeriodSeconds == 20,
			"priority":           p.Spec.PriorityClassName == "system-cluster-critical",
			"pull policy":        ctr.ImagePullPolicy == corev1.PullNever,
			"pull secrets":       slices.Equal(p.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}),
			"required affinity":  nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Operator == corev1.NodeSelectorOpExists,
			"preferred affinity": nodes.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight == 7,
			"anti-affinity":      len(others.RequiredDuringSchedulingIgnoredDuringExecution) == 1 && len(others.PreferredDuringSchedulingIgnoredDuringExecution) == 0,
			"domain":             slices.Contains(ctr.Command, "--advertise-client-urls=http://"+p.Name+".placed."+c.namespace+".svc.cluster.local:2379"),
			"only the launcher":  !slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name != resources.InitLauncher }),
			"no account":         !*p.Spec.AutomountServiceAccountToken,
			"spread as declared": len(p.Spec.TopologySpreadConstraints) == 1 && p.Spec.TopologySpreadConstraints[0].TopologyKey == corev1.LabelHostname,
		} {
			if !right {
				c.Errorf("pod %s: %s", p.Name, what)
			}
		}
	}
}

// TestAffinity keeps the members off one node, and then off another node instead. Members on
// a forbidden node are replaced, one after the other.
func TestAffinity(t *testing.T) {
	t.Parallel()
	needNodes(t, 3)
	s := start(t)
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	off := func(node string) string {
		return `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` +
			`{"key":"kubernetes.io/hostname","operator":"NotIn","values":["` + node + `"]}]}]}}}`
	}
	c := s.create("affine", 3, etcdVersion, "\n  pod: {affinity: "+off(nodes[0])+"}")
	data := c.fill()
	for _, node := range []string{nodes[0], nodes[1]} {
		c.patch(`{"spec":{"pod":{"affinity":` + off(node) + `}}}`)
		c.rolled(3, func(p *corev1.Pod) bool {
			terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			return p.Spec.NodeName != node && slices.Equal(terms[0].MatchExpressions[0].Values, []string{node})
		})
		c.holds(data)
	}
}

// TestClientServiceTemplate changes the client Service through its template while
// clients use it, and takes everything back.
func TestClientServiceTemplate(t *testing.T) {
	env.RequireLocal(t, harness.PodNetwork)
	t.Parallel()
	s := start(t)
	c := s.create("served", 3, etcdVersion)
	data := c.fill()
	c.patch(`{"spec":{"services":{"client":{"type":"NodePort","labels":{"team":"a"},"annotations":{"example.com/a":"b"},"externalTrafficPolicy":"Cluster","ipFamilyPolicy":"PreferDualStack","trafficDistribution":"PreferClose"}}}}`)
	c.awaitService("served-client", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeNodePort && svc.Labels["team"] == "a" && svc.Annotations["example.com/a"] == "b" &&
			svc.Spec.IPFamilyPolicy != nil && *svc.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack &&
			svc.Spec.TrafficDistribution != nil && *svc.Spec.TrafficDistribution == "PreferClose"
	})
	w, err := harness.WriteThrough(s.ctx(), writeInterval, c.nodePort(), 3)
	s.must(err, "write through the node port")
	port := c.nodePort()
	s.kubectl("patch", "service", "served-client", "--type=merge", "-p", `{"spec":{"sessionAffinity":"ClientIP","selector":{"etcd_role":"learner"}}}`)
	c.awaitService("served-client", func(svc *corev1.Service) bool { return svc.Spec.Selector["etcd_role"] == "voter" })
	if now := c.nodePort(); now != port {
		t.Errorf("the repair moved the service from %s to %s", port, now)
	}
	// The status reports what Kubernetes rejects, and nothing else suffers.
	c.patch(`{"spec":{"services":{"client":{"nodePort":65000}}}}`)
	object := c.await(s.ctx(), "the port to be rejected", func(object *clusterObject) bool {
		return condition(object, v1beta2.ClusterConditionServiceAsDeclared).Reason == "Rejected"
	})
	s.contains(condition(object, v1beta2.ClusterConditionServiceAsDeclared).Message, "65000", "spec.services.client")
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable: corev1.ConditionTrue, v1beta2.ClusterConditionDegraded: corev1.ConditionFalse,
	})
	c.stopped(w)
	c.patch(`{"spec":{"services":null}}`)
	c.awaitService("served-client", func(svc *corev1.Service) bool {
		_, kept := svc.Annotations["example.com/a"]
		return svc.Spec.Type == corev1.ServiceTypeClusterIP && svc.Spec.Ports[0].NodePort == 0 && svc.Labels["team"] == "" && !kept
	})
	c.await(s.ctx(), "the service to be as declared", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionServiceAsDeclared, corev1.ConditionTrue)
	})
	c.settle(3)
	c.holds(data)
}
