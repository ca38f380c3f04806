// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "k8s.io/apimachinery/pkg/types"

// run is one reconcile of one cluster: the ports and what the Reconciler remembers, the key,
// and what was observed. Functions that observe take a run and fill seen; functions that act
// take a run and one action.
type run struct {
	*Reconciler

	key  types.NamespacedName
	seen *seen
}
