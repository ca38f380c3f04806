// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// PruningOf returns the request with which a pod of an EtcdBackup deletes backups, and the name of the container that
// has it; nil if the pod deletes none. A request that cannot be read is one that may delete everything.
func PruningOf(pod *corev1.PodSpec) (request *agent.Request, container string) {
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		r, err := agent.RequestIn(c.Args)
		switch {
		case err != nil:
			return &agent.Request{Prune: &agent.Prune{}}, c.Name
		case r != nil && r.Prune != nil:
			return r, c.Name
		}
	}
	return nil, ""
}

// SharesKey is true if a pod of an EtcdBackup stores under a name that other attempts of the backup have, too. So does a
// request that cannot be read.
func SharesKey(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		r, err := agent.RequestIn(c.Args)
		return err != nil || r != nil && r.Save != nil && r.Save.Layout != manifest.LayoutDirectory
	})
}
