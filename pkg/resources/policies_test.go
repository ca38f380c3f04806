// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNetworkPoliciesSelectMembersAndJobs compares artifacts/network-policies/members.yaml
// with the labels of pods. A member that no policy selects, or that others may not reach,
// cannot join a cluster in a namespace that denies everything else.
func TestNetworkPoliciesSelectMembersAndJobs(t *testing.T) {
	t.Parallel()
	const uid = types.UID("0123")
	member := Pod(lostCluster(false), MemberPod{Name: "c-old"}).Labels
	recovered, err := RecoveryPod(lostCluster(false), recovery(func(*v1beta2.RecoveryStatus) {}), MemberPod{}, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	draining, fenced := maps.Clone(member), maps.Clone(member)
	draining[LabelRole] = RoleDraining
	IsFenced(&fenced, "c")
	policies := map[string]*networkingv1.NetworkPolicy{}
	for _, p := range readPolicies(t) {
		policies[p.Name] = p
	}
	for name, test := range map[string]struct {
		labels   map[string]string
		selected []string
	}{
		"member":           {member, []string{"etcd-members", "etcd-dns-and-store"}},
		"leaving member":   {draining, []string{"etcd-members", "etcd-dns-and-store"}},
		"recovery member":  {recovered.Labels, []string{"etcd-members", "etcd-dns-and-store"}},
		"fenced member":    {fenced, []string{"etcd-members", "etcd-dns-and-store"}},
		"Job of a backup":  {BackupLabels(uid), []string{"etcd-jobs", "etcd-dns-and-store"}},
		"Job of a restore": {RestoreLabels(uid), []string{"etcd-jobs", "etcd-dns-and-store"}},
	} {
		for policy, p := range policies {
			want := strings.Contains(" "+strings.Join(test.selected, " ")+" ", " "+policy+" ")
			if got := selects(t, &p.Spec.PodSelector, test.labels); got != want {
				t.Errorf("policy %s selects %s: %t, want %t", policy, name, got, want)
			}
		}
	}
	for from, test := range map[string]struct {
		labels        map[string]string
		client, peers bool
	}{
		"member":           {member, true, true},
		"recovery member":  {recovered.Labels, true, true},
		"Job of a backup":  {BackupLabels(uid), true, false},
		"Job of a restore": {RestoreLabels(uid), false, false},
	} {
		for port, want := range map[int32]bool{ClientPort: test.client, PeerPort: test.peers} {
			if got := admits(t, policies["etcd-members"], test.labels, port); got != want {
				t.Errorf("a member admits %s on port %d: %t, want %t", from, port, got, want)
			}
		}
	}
}

func readPolicies(t *testing.T) []*networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile("../../artifacts/network-policies/members.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policies []*networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		p := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), p); err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	return policies
}

func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}

// admits is true if a rule of the policy lets pods with these labels, of the same
// namespace, in on a port.
func admits(t *testing.T, policy *networkingv1.NetworkPolicy, from map[string]string, port int32) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		for _, peer := range rule.From {
			if peer.PodSelector == nil || peer.NamespaceSelector != nil || !selects(t, peer.PodSelector, from) {
				continue
			}
			for _, p := range rule.Ports {
				if p.Port.IntVal == port {
					return true
				}
			}
		}
	}
	return false
}
