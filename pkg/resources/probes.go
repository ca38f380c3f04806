// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Probes are etcd's own endpoints, asked by the kubelet; there is no shell in the
// image to run anything else.
//
//	etcd                       startup, liveness                                readiness
//	< 3.3                      TCP peer port                                    /health, TCP if it has TLS
//	3.3 to 3.4.28, 3.5.0 to 2  TCP peer port                                    /health
//	3.5.3 to 3.5.10            /health?serializable=true on the metrics port    /health
//	3.4.29, 3.5.11 and later   /livez on the metrics port                       /readyz
//
// The readiness probe goes to the client port: a member that joined by a snapshot of the
// database may be a voter and healthy for seconds before it serves clients. With
// TLS the probe goes to the metrics port, because the kubelet has no client certificate.
//
// Only readiness asks the quorum. A member that lost its quorum must not be
// restarted for that: restarts would only delay its return. Nor may startup depend
// on it, or members that start together would wait for each other.

// A member has loaded its database before it listens for metrics, which can take
// minutes; the first response ends the startup probe, so trying often costs nothing.
const (
	startupPeriodSeconds = 1
	startupFailures      = 600
)

// The /readyz of etcd waits for a leader, so the time-out outlasts an election. The pod of a
// member that hangs is unready after 7 s at most. The look that this starts takes 2 s. So the
// hang is in the status within 10 s.
const (
	readinessPeriodSeconds  = 1
	readinessTimeoutSeconds = 3
	readinessFailures       = 2
)

// Liveness is for a process that hangs. It is patient, because a restart during a
// stall of the disk makes the stall longer. From 3.5.3 on it asks for a read, which waits
// while etcd defragments the database: etcd writes all of it again. So the patience grows
// with the largest database that the quota allows, at slowestDisk bytes a second, up to
// the 30 minutes after which the controller stops waiting for a defragmentation.
const (
	livenessPeriodSeconds   = 10
	livenessTimeoutSeconds  = 15
	livenessFailures        = 8
	mostLivenessFailures    = 30 * 60 / livenessTimeoutSeconds
	slowestDisk             = 20 << 20
	writtenWhileAProbeFails = livenessTimeoutSeconds * slowestDisk
)

const probeTimeoutSeconds = 5

// addProbes gives the container the probes that its version of etcd can respond.
func addProbes(c *v1beta2.EtcdCluster, container *corev1.Container) {
	alive, ready := probeHandlers(featuresOf(Version(c)), HasClientTLS(c))
	container.StartupProbe = &corev1.Probe{
		ProbeHandler:     alive,
		PeriodSeconds:    startupPeriodSeconds,
		TimeoutSeconds:   probeTimeoutSeconds,
		FailureThreshold: startupFailures,
	}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:     ready,
		PeriodSeconds:    readinessPeriodSeconds,
		TimeoutSeconds:   readinessTimeoutSeconds,
		FailureThreshold: readinessFailures,
	}
	container.LivenessProbe = &corev1.Probe{
		ProbeHandler:     alive,
		PeriodSeconds:    livenessPeriodSeconds,
		TimeoutSeconds:   livenessTimeoutSeconds,
		FailureThreshold: livenessFailuresFor(QuotaBackendBytes(c)),
	}
}

// livenessFailuresFor returns how many probes in a row must fail before the container of a
// member restarts whose database has at most quota bytes. Each failure of a process that
// hangs takes livenessTimeoutSeconds.
func livenessFailuresFor(quota int64) int32 {
	return int32(min(max(quota/writtenWhileAProbeFails+1, livenessFailures), mostLivenessFailures))
}

// probeHandlers returns the probe of the process of a member, which does not depend on the
// other members, and the probe of its service to clients. An alarm for a full database does
// not make a member unready: clients need reads and deletions to clear the alarm.
func probeHandlers(has features, secureClient bool) (alive, ready corev1.ProbeHandler) {
	const health = "/health?exclude=NOSPACE"
	var readyPort int32 = ClientPort
	if secureClient {
		readyPort = MetricsPort
	}
	switch {
	case has.livez:
		return httpGet("/livez", MetricsPort), httpGet("/readyz", readyPort)
	case has.serializableHealth:
		return httpGet("/health?exclude=NOSPACE&exclude=CORRUPT&serializable=true", MetricsPort), httpGet(health, readyPort)
	case has.metricsListener:
		return tcpSocket(PeerPort), httpGet(health, readyPort)
	case !secureClient:
		return tcpSocket(PeerPort), httpGet("/health", ClientPort)
	default:
		return tcpSocket(PeerPort), tcpSocket(ClientPort)
	}
}

func httpGet(path string, port int32) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}}
}

func tcpSocket(port int32) corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
}
