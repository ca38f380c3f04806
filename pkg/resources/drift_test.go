// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// served returns a service with what the API fills in.
func served(svc *corev1.Service) *corev1.Service {
	svc = svc.DeepCopy()
	svc.UID, svc.ResourceVersion = "u", "7"
	s := &svc.Spec
	if s.ClusterIP == "" {
		s.ClusterIP = "10.96.0.17"
	}
	s.ClusterIPs = []string{s.ClusterIP}
	s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	setDefault(&s.IPFamilyPolicy, ptr.To(corev1.IPFamilyPolicySingleStack))
	s.SessionAffinity = corev1.ServiceAffinityNone
	s.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	if s.Type != corev1.ServiceTypeClusterIP {
		for i := range s.Ports {
			if s.Ports[i].NodePort == 0 {
				s.Ports[i].NodePort = 30079
			}
		}
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		s.AllocateLoadBalancerNodePorts = ptr.To(true)
		if s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			s.HealthCheckNodePort = 30080
		}
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	}
	return svc
}

func nodePort(c *v1beta2.EtcdCluster) {
	c.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{Type: corev1.ServiceTypeNodePort}}
}

func TestServiceDriftLeavesWhatTheAPIFilledIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*v1beta2.EtcdCluster{
		"plain": newCluster(), "node port": newCluster(nodePort), "load balancer": newCluster(loadBalancer),
	} {
		live := served(ClientService(c))
		live.Labels["somebody"] = "else"
		live.Annotations["balancer.example.com/id"] = "1"
		live.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
		if got, changed := ClientServiceDrift(c, live); changed {
			t.Errorf("%s: fights the API: %s", name, cmp.Diff(live, got))
		}
	}
	c := newCluster()
	live := served(PeerService(c))
	live.Annotations["mesh.example.com/id"] = "1"
	got, changed := PeerServiceDrift(c, live)
	if changed || got.Annotations["mesh.example.com/id"] == "" {
		t.Errorf("headless Service: %v %v", changed, got.Annotations)
	}
}

func TestServiceDriftRepairs(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for name, damage := range map[string]func(*corev1.Service){
		"selector":       func(s *corev1.Service) { s.Spec.Selector["app"] = "x" },
		"wider selector": func(s *corev1.Service) { delete(s.Spec.Selector, LabelCluster) },
		"port":           func(s *corev1.Service) { s.Spec.Ports[0].Port = 1 },
		"target port":    func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
		"more ports":     func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "x", Port: 1}) },
		"no ports":       func(s *corev1.Service) { s.Spec.Ports = nil },
		"type":           func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		"label":          func(s *corev1.Service) { s.Labels = nil },
		"cluster":        func(s *corev1.Service) { delete(s.Annotations, AnnotationClusterUID) },
		"not ready":      func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = !s.Spec.PublishNotReadyAddresses },
		"source ranges":  func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0"} },
		"distribution":   func(s *corev1.Service) { s.Spec.TrafficDistribution = ptr.To("PreferClose") },
	} {
		for _, kind := range []struct {
			made   *corev1.Service
			repair func(*v1beta2.EtcdCluster, *corev1.Service) (*corev1.Service, bool)
		}{{ClientService(c), ClientServiceDrift}, {PeerService(c), PeerServiceDrift}} {
			live := served(kind.made)
			good := live.DeepCopy()
			damage(live)
			bad := live.DeepCopy()
			got, changed := kind.repair(c, live)
			if diff := cmp.Diff(good, got); !changed || diff != "" {
				t.Errorf("%s of %s: changed %v, %s", name, live.Name, changed, diff)
			}
			if diff := cmp.Diff(bad, live); diff != "" {
				t.Errorf("%s of %s: the live object was written to: %s", name, live.Name, diff)
			}
		}
	}
}

// TestTemplateTakesBack: what the template has no more goes from the service, and what
// others have put there stays.
func TestTemplateTakesBack(t *testing.T) {
	t.Parallel()
	with := func(labels, annotations map[string]string) *v1beta2.EtcdCluster {
		return newCluster(func(c *v1beta2.EtcdCluster) {
			c.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{Labels: labels, Annotations: annotations}}
		})
	}
	live := served(ClientService(with(map[string]string{"a": "1", "app": "mine"}, map[string]string{"example.com/internal": "true", "b": "2"})))
	live.Labels["theirs"], live.Annotations["theirs"] = "x", "y"
	before := live.DeepCopy()

	less, changed := ClientServiceDrift(with(nil, map[string]string{"b": "3"}), live)
	if _, kept := less.Annotations["example.com/internal"]; kept || !changed || less.Annotations["b"] != "3" || less.Labels["a"] != "" ||
		less.Labels["app"] != AppName || less.Labels["theirs"] != "x" || less.Annotations["theirs"] != "y" {
		t.Errorf("less of a template: changed %t, %v, %v", changed, less.Labels, less.Annotations)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the live object was written to: %s", diff)
	}
	none, changed := ClientServiceDrift(newCluster(), less)
	if _, kept := none.Annotations["b"]; kept || !changed || none.Annotations[AnnotationTemplated] != "" || none.Annotations["theirs"] != "y" {
		t.Errorf("no template: changed %t, %v", changed, none.Annotations)
	}
	if again, changed := ClientServiceDrift(newCluster(), none); changed {
		t.Errorf("it does not come to rest: %v", again.Annotations)
	}
}

func TestClientServiceFollowsTheTemplate(t *testing.T) {
	t.Parallel()
	plain, balanced := newCluster(), newCluster(loadBalancer)
	up, changed := ClientServiceDrift(balanced, served(ClientService(plain)))
	if !changed || up.Spec.Type != corev1.ServiceTypeLoadBalancer || *up.Spec.LoadBalancerClass != "example.com/internal" || up.Spec.Ports[0].NodePort != 32379 {
		t.Errorf("to a load balancer: %+v", up.Spec)
	}
	down, changed := ClientServiceDrift(plain, served(up))
	if !changed || down.Spec.Type != corev1.ServiceTypeClusterIP || down.Spec.Ports[0].NodePort != 0 || down.Spec.LoadBalancerClass != nil ||
		down.Spec.AllocateLoadBalancerNodePorts != nil || down.Spec.HealthCheckNodePort != 0 || down.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("back from a load balancer: %+v", down.Spec)
	}
	other := newCluster(loadBalancer)
	other.Spec.Services.Client.LoadBalancerClass = ptr.To("example.com/other")
	if _, changed := ClientServiceDrift(other, served(ClientService(balanced))); changed {
		t.Error("the class of a load balancer cannot change, and was changed")
	}
	external := served(ClientService(plain))
	external.Spec.ExternalIPs = []string{"192.0.2.7"}
	external.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	if _, changed := ClientServiceDrift(plain, external); changed {
		t.Error("fights the API about the traffic policy of an external address")
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	c := newCluster()
	selector, err := metav1.LabelSelectorAsSelector(PodDisruptionBudget(c, 2).Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(join(c).Labels)) || selector.Matches(labels.Set(learn(c).Labels)) {
		t.Error("the budget must count voters and no other")
	}

	live := PodDisruptionBudget(c, 2)
	live.Status.CurrentHealthy = 3
	live.Labels["somebody"] = "else"
	if got, changed := BudgetDrift(c, live, PodDisruptionBudget(c, 2)); changed {
		t.Errorf("drift of nothing: %s", cmp.Diff(live, got))
	}
	if got, changed := BudgetDrift(c, live, PodDisruptionBudget(c, 3)); !changed || got.Spec.MinAvailable.IntVal != 3 || live.Spec.MinAvailable.IntVal != 2 {
		t.Errorf("one more: %v %+v", changed, got.Spec)
	}
	live.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	if got, changed := BudgetDrift(c, live, PodDisruptionBudget(c, 2)); !changed || *got.Spec.UnhealthyPodEvictionPolicy != policyv1.IfHealthyBudget {
		t.Errorf("eviction policy: %v %+v", changed, got.Spec)
	}
}

func TestPVC(t *testing.T) {
	t.Parallel()
	if got := PVC(newCluster(), first); got != nil {
		t.Errorf("a PVC without a template: %+v", got)
	}
	deleted, kept := newCluster(volumes), newCluster(retain)
	if RetainsDeleted(deleted) || !RetainsDeleted(kept) {
		t.Error("whenDeleted is not heeded")
	}
	if got, changed := PVCDrift(deleted, confirmedPVC(deleted)); changed {
		t.Errorf("drift of nothing: %+v", got)
	}
	if got, changed := PVCDrift(kept, confirmedPVC(kept)); changed {
		t.Errorf("drift of nothing: %+v", got)
	}
	// A new PVC has an owner reference until it is confirmed. One of something else stays.
	old := PVC(deleted, first)
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	old.OwnerReferences = append(old.OwnerReferences, other)
	owned, changed := PVCDrift(deleted, old)
	if !changed || len(owned.OwnerReferences) != 1 || owned.OwnerReferences[0].UID != "x" || !Owns(deleted, owned) {
		t.Errorf("confirmed: %v %+v", changed, owned.ObjectMeta)
	}
	// While the scheduler chooses a node for a PVC, a write that can wait would make it fail.
	waiting := PVC(deleted, first)
	waiting.Status.Phase = corev1.ClaimPending
	if got, changed := PVCDrift(deleted, waiting); changed || !IsMarkedLasting(deleted, waiting) {
		t.Errorf("fights the scheduler: %+v", got)
	}
	if _, changed := PVCDrift(newCluster(volumes, protection), waiting); !changed {
		t.Error("a PVC that waits for its volume is not protected")
	}
	waiting.Status.Phase = corev1.ClaimBound
	if got, changed := PVCDrift(deleted, waiting); !changed || len(got.OwnerReferences) != 0 || IsMarkedLasting(deleted, waiting) {
		t.Errorf("bound: %v %+v", changed, got.ObjectMeta)
	}
	owned.Spec.VolumeName = "pv-1"
	owned.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	if got, changed := PVCDrift(deleted, owned); changed {
		t.Errorf("fights the binder: %+v", got)
	}
}

// confirmedPVC returns a PVC as it is after the first reconcile that sees it.
func confirmedPVC(c *v1beta2.EtcdCluster) *corev1.PersistentVolumeClaim {
	pvc := PVC(c, first)
	MarkAlone(c, pvc)
	return pvc
}
