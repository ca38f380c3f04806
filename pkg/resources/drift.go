// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// PeerServiceDrift returns live as it should be, and whether that is a change. What
// the API filled in stays, and so do labels and annotations of others.
func PeerServiceDrift(c *v1beta2.EtcdCluster, live *corev1.Service) (*corev1.Service, bool) {
	want := PeerService(c)
	// An address cannot be taken back; a service that has one needs to be made again.
	want.Spec.ClusterIP = live.Spec.ClusterIP
	svc, changed := repairService(live, want)
	return svc, MarkOwned(c, svc) || changed
}

// ClientServiceDrift returns live as it should be, and whether that is a change. What
// the API or a load balancer filled in stays, and so do labels and annotations of
// others.
func ClientServiceDrift(c *v1beta2.EtcdCluster, live *corev1.Service) (*corev1.Service, bool) {
	want := ClientService(c)
	if live.Spec.Type == want.Spec.Type {
		// The class of a load balancer is fixed while it is one. Asking for another
		// one would be rejected each time.
		want.Spec.LoadBalancerClass = live.Spec.LoadBalancerClass
	}
	if want.Spec.ExternalTrafficPolicy == "" && len(live.Spec.ExternalIPs) > 0 {
		// The API fills it in for a Service that has an external address.
		want.Spec.ExternalTrafficPolicy = live.Spec.ExternalTrafficPolicy
	}
	live, fewer := untemplated(live, want)
	svc, changed := repairService(live, want)
	return svc, MarkOwned(c, svc) || changed || fewer
}

// repairService puts what the controller owns of want into a copy of live.
func repairService(live, want *corev1.Service) (*corev1.Service, bool) {
	svc := live.DeepCopy()
	changed := putAll(&svc.Labels, want.Labels)
	changed = putAll(&svc.Annotations, want.Annotations) || changed

	spec := &svc.Spec
	spec.Type = want.Spec.Type
	spec.Selector = want.Spec.Selector
	spec.Ports = repairPorts(live, want)
	spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	spec.ExternalTrafficPolicy = want.Spec.ExternalTrafficPolicy
	spec.LoadBalancerClass = want.Spec.LoadBalancerClass
	spec.LoadBalancerSourceRanges = want.Spec.LoadBalancerSourceRanges
	spec.TrafficDistribution = want.Spec.TrafficDistribution
	repairFamilies(spec, &want.Spec)
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		spec.AllocateLoadBalancerNodePorts = nil
	}
	if spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		spec.HealthCheckNodePort = 0
	}
	return svc, changed || !equality.Semantic.DeepEqual(live.Spec, svc.Spec)
}

// repairPorts returns the ports of want with the node ports that live was given, if
// both have node ports and the user names none.
func repairPorts(live, want *corev1.Service) []corev1.ServicePort {
	ports := want.DeepCopy().Spec.Ports
	if want.Spec.Type == corev1.ServiceTypeClusterIP {
		return ports
	}
	for i := range ports {
		for _, old := range live.Spec.Ports {
			if ports[i].NodePort == 0 && old.Name == ports[i].Name {
				ports[i].NodePort = old.NodePort
			}
		}
	}
	return ports
}
