// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	v4, v6               = corev1.IPv4Protocol, corev1.IPv6Protocol
	single, prefer, both = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
)

// families is a template with a policy ("" for none) and families.
func families(policy corev1.IPFamilyPolicy, list ...corev1.IPFamily) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) {
		t := &v1beta2.ServiceTemplate{IPFamilies: list}
		if policy != "" {
			t.IPFamilyPolicy = &policy
		}
		c.Spec.Services = &v1beta2.ServicesPolicy{Client: t}
	}
}

// servedWith is a service as the API keeps it, with addresses of these families.
func servedWith(svc *corev1.Service, policy corev1.IPFamilyPolicy, list ...corev1.IPFamily) *corev1.Service {
	svc = served(svc)
	svc.Spec.IPFamilyPolicy, svc.Spec.IPFamilies, svc.Spec.ClusterIPs = &policy, list, nil
	for _, family := range list {
		svc.Spec.ClusterIPs = append(svc.Spec.ClusterIPs, map[corev1.IPFamily]string{v4: "10.96.0.17", v6: "fd00::17"}[family])
	}
	svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
	return svc
}

func TestFamiliesOfTheClientService(t *testing.T) {
	t.Parallel()
	type list = []corev1.IPFamily
	for name, test := range map[string]struct {
		desired  func(*v1beta2.EtcdCluster)
		policy   corev1.IPFamilyPolicy // of the living service
		live     list
		want     corev1.IPFamilyPolicy // "": nothing to do
		families list
		fixed    bool
	}{
		"nothing declared":                     {families(""), single, list{v4}, "", nil, false},
		"nothing declared, edited to both":     {families(""), both, list{v4, v6}, "", nil, false},
		"one family":                           {families("", v6), single, list{v6}, "", nil, false},
		"one family, edited to both":           {families("", v6), prefer, list{v6, v4}, single, list{v6}, false},
		"one family and the policy, edited":    {families(single, v4), both, list{v4, v6}, single, list{v4}, false},
		"one policy, edited to both":           {families(single), both, list{v4, v6}, single, list{v4}, false},
		"both, edited to one":                  {families(both), single, list{v4}, both, list{v4}, false},
		"both by name, edited to one":          {families(both, v4, v6), single, list{v4}, both, list{v4, v6}, false},
		"both by name":                         {families(prefer, v6, v4), prefer, list{v6, v4}, "", nil, false},
		"both wanted where there is one":       {families(prefer), prefer, list{v4}, "", nil, false},
		"the other family":                     {families("", v6), single, list{v4}, "", nil, true},
		"the other family of both":             {families(single, v6), prefer, list{v4, v6}, "", nil, true},
		"both in the other order":              {families(prefer, v6, v4), prefer, list{v4, v6}, "", nil, true},
		"both in the other order, of one":      {families(prefer, v6, v4), single, list{v4}, prefer, list{v4}, true},
		"the other family first, of one":       {families(both, v6), single, list{v4}, both, list{v4}, true},
		"another policy where there are both":  {families(both), prefer, list{v4, v6}, both, list{v4, v6}, false},
		"the first of both named, edited away": {families(prefer, v6), single, list{v6}, prefer, list{v6}, false},
	} {
		c := newCluster(test.desired)
		live := servedWith(ClientService(c), test.policy, test.live...)
		before := live.DeepCopy()
		got, changed := ClientServiceDrift(c, live)
		if changed != (test.want != "") {
			t.Errorf("%s: changed %v", name, changed)
		}
		if changed && (*got.Spec.IPFamilyPolicy != test.want || !slices.Equal(got.Spec.IPFamilies, test.families)) {
			t.Errorf("%s: %s %v", name, *got.Spec.IPFamilyPolicy, got.Spec.IPFamilies)
		}
		// What the API rejects of a service that exists.
		if got.Spec.ClusterIP != before.Spec.ClusterIP || got.Spec.ClusterIPs[0] != before.Spec.ClusterIP || got.Spec.IPFamilies[0] != test.live[0] {
			t.Errorf("%s: asks for another address than %v: %v", name, before.Spec.ClusterIPs, got.Spec.ClusterIPs)
		}
		if !slices.Equal(live.Spec.ClusterIPs, before.Spec.ClusterIPs) || !slices.Equal(live.Spec.IPFamilies, before.Spec.IPFamilies) {
			t.Errorf("%s: the live object was written to", name)
		}
		if _, again := ClientServiceDrift(c, got); changed && again {
			t.Errorf("%s: repairs what it has repaired", name)
		}
		if why := ClientServiceFixed(c, live); (why != "") != test.fixed || test.fixed && !strings.Contains(why, "delete the service") {
			t.Errorf("%s: fixed: %q", name, why)
		}
	}
}

// A service that had another type has no family yet and may get any.
func TestFamiliesAfterAnotherType(t *testing.T) {
	t.Parallel()
	c := newCluster(families("", v6))
	live := served(ClientService(c))
	live.Spec.Type, live.Spec.IPFamilies, live.Spec.IPFamilyPolicy, live.Spec.ClusterIPs, live.Spec.ClusterIP = corev1.ServiceTypeExternalName, nil, nil, nil, ""
	got, changed := ClientServiceDrift(c, live)
	if !changed || !slices.Equal(got.Spec.IPFamilies, []corev1.IPFamily{v6}) || *got.Spec.IPFamilyPolicy != single {
		t.Errorf("%v %+v", changed, got.Spec)
	}
}

// A client of the client Service learns the names of the members, which must resolve to
// addresses of the same family.
func TestFamiliesOfTheMembers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		desired func(*v1beta2.EtcdCluster)
		want    *corev1.IPFamilyPolicy
	}{
		"nothing":      {families(""), nil},
		"single stack": {families(single), nil},
		"IPv6":         {families("", v6), ptr.To(prefer)},
		"both":         {families(both), ptr.To(prefer)},
	} {
		c := newCluster(test.desired)
		made := PeerService(c)
		if got := made.Spec.IPFamilyPolicy; !ptr.Equal(got, test.want) || len(made.Spec.IPFamilies) > 0 {
			t.Errorf("%s: made with %v", name, got)
		}
		old := servedWith(PeerService(newCluster()), single, v4)
		repaired, changed := PeerServiceDrift(c, old)
		if changed != (test.want != nil) || changed && *repaired.Spec.IPFamilyPolicy != prefer {
			t.Errorf("%s: an older one: %v %v", name, changed, repaired.Spec.IPFamilyPolicy)
		}
	}
}

func TestLoadBalancerClassIsFixed(t *testing.T) {
	t.Parallel()
	c := newCluster(loadBalancer)
	live := served(ClientService(c))
	if why := ClientServiceFixed(c, live); why != "" {
		t.Errorf("nothing has changed: %s", why)
	}
	c.Spec.Services.Client.LoadBalancerClass = ptr.To("example.com/other")
	if why := ClientServiceFixed(c, live); !strings.Contains(why, `"example.com/internal", and "example.com/other" is declared`) {
		t.Errorf("another class: %q", why)
	}
	c.Spec.Services.Client.Type = corev1.ServiceTypeClusterIP
	c.Spec.Services.Client.LoadBalancerClass = nil
	if why := ClientServiceFixed(c, live); why != "" {
		t.Errorf("no load balancer any more: %s", why)
	}
}
