// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import "k8s.io/apimachinery/pkg/types"

// Names of the secrets of the one cluster.
const (
	PeerSecret     = ClusterName + "-peer-tls"
	ServerSecret   = ClusterName + "-server-tls"
	OperatorSecret = ClusterName + "-operator-tls"
	ClientSecret   = ClusterName + "-client-tls"
	CASecret       = ClusterName + "-ca-tls"
)

// secretNames are the Secrets that an event may be about.
var secretNames = []string{PeerSecret, ServerSecret, OperatorSecret, ClientSecret, CASecret}

// SecretNames returns the Secrets that the event deletes together: one or more of the five.
func (e Event) SecretNames() []string {
	var names []string
	for i, name := range secretNames {
		if (1+e.A%(1<<len(secretNames)-1))&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// SecretName returns the Secret that the event is about.
func (e Event) SecretName() string {
	return secretNames[e.A%len(secretNames)]
}

// Where the one EtcdCluster is.
const (
	Namespace   = "ns"
	ClusterName = "c"
	RecordName  = ClusterName + "-record"
)

// Key is that of the one EtcdCluster in the queue of a controller.
var Key = types.NamespacedName{Namespace: Namespace, Name: ClusterName}
