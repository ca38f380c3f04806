// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// PeerServiceDrift returns live as it should be, and whether that is a change: a copy if it
// is, live itself if not. What the API filled in stays, and so do labels and annotations of
// others.
func PeerServiceDrift(c *v1beta2.EtcdCluster, live *corev1.Service) (*corev1.Service, bool) {
	want := PeerService(c)
	// An address cannot be taken back; a service that has one needs to be made again.
	want.Spec.ClusterIP = live.Spec.ClusterIP
	return repairService(c, live, want)
}

// ClientServiceDrift returns live as it should be, and whether that is a change: a copy if
// it is, live itself if not. What the API or a load balancer filled in stays, and so do
// labels and annotations of others.
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
	svc, changed := repairService(c, live, want)
	return svc, changed || fewer
}

// repairService returns live with what the controller owns of want, and whether that is a
// change: a copy if it is, live itself if not. Most services are as they should be, so the
// whole object is copied only at the end.
func repairService(c *v1beta2.EtcdCluster, live, want *corev1.Service) (*corev1.Service, bool) {
	svc := *live
	svc.ObjectMeta = editableMeta(&live.ObjectMeta)
	changed := putAll(&svc.Labels, want.Labels)
	changed = putAll(&svc.Annotations, want.Annotations) || changed
	changed = MarkOwned(c, &svc) || changed
	repairServiceSpec(&svc.Spec, live, want)
	if !changed && isSame(&live.Spec, &svc.Spec) {
		return live, false
	}
	return svc.DeepCopy(), true
}

// repairServiceSpec changes spec, a shallow copy of that of live. It replaces fields and
// changes nothing that they refer to.
func repairServiceSpec(spec *corev1.ServiceSpec, live, want *corev1.Service) {
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
}

// editableMeta returns metadata whose labels, annotations and owner references can be
// changed without a change of meta.
func editableMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	editable := *meta
	editable.Labels, editable.Annotations = maps.Clone(meta.Labels), maps.Clone(meta.Annotations)
	editable.OwnerReferences = slices.Clone(meta.OwnerReferences)
	return editable
}

// isSame compares as the API does: it does not tell an empty list from none. reflect.DeepEqual
// is stricter and several times faster, and mostly finds that nothing differs.
func isSame(a, b any) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
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
