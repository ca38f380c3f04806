// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// PeerServiceName returns the name of the headless Service.
func PeerServiceName(c *v1beta2.EtcdCluster) string { return c.Name }

// ClientServiceName returns the name of the client Service.
func ClientServiceName(c *v1beta2.EtcdCluster) string { return c.Name + "-client" }

// PeerService returns the headless service that gives the members their DNS names.
// It publishes members that are not ready, because they must find each other to
// become ready.
func PeerService(c *v1beta2.EtcdCluster) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: objectMeta(c, PeerServiceName(c), nil, nil),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 Labels(c.Name),
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{servicePort("client", ClientPort), servicePort("peer", PeerPort)},
		},
	}
	if wantsMoreFamilies(clientTemplate(c)) {
		// Clients learn the members' names, which must resolve to reachable addresses.
		svc.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	}
	return svc
}

// ClientService returns the client Service. It hides members that are not ready,
// learners, which do not serve clients, and voters that are about to be removed.
func ClientService(c *v1beta2.EtcdCluster) *corev1.Service {
	t := clientTemplate(c)
	svc := &corev1.Service{
		ObjectMeta: objectMeta(c, ClientServiceName(c), t.Labels, t.Annotations),
		Spec: corev1.ServiceSpec{
			Type:                t.Type,
			Selector:            merged(Labels(c.Name), map[string]string{LabelRole: RoleVoter}),
			Ports:               []corev1.ServicePort{servicePort("client", ClientPort)},
			TrafficDistribution: t.TrafficDistribution,
			IPFamilyPolicy:      t.IPFamilyPolicy,
			IPFamilies:          t.IPFamilies,
		},
	}
	if record := templated(t); record != "" {
		svc.Annotations[AnnotationTemplated] = record
	}
	if t.Type != corev1.ServiceTypeClusterIP {
		svc.Spec.Ports[0].NodePort = t.NodePort
		svc.Spec.ExternalTrafficPolicy = t.ExternalTrafficPolicy
	}
	if t.Type == corev1.ServiceTypeLoadBalancer {
		svc.Spec.LoadBalancerClass = t.LoadBalancerClass
		svc.Spec.LoadBalancerSourceRanges = t.LoadBalancerSourceRanges
	}
	return svc
}

// clientTemplate returns a copy of the user's template with the defaults that the
// API would fill in, so that a field which the user removes falls back to them.
func clientTemplate(c *v1beta2.EtcdCluster) *v1beta2.ServiceTemplate {
	t := &v1beta2.ServiceTemplate{}
	if c.Spec.Services != nil && c.Spec.Services.Client != nil {
		t = c.Spec.Services.Client.DeepCopy()
	}
	if t.Type == "" {
		t.Type = corev1.ServiceTypeClusterIP
	}
	if t.ExternalTrafficPolicy == "" {
		t.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	return t
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}
}
