// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// podByName returns the pod called name that belongs to the cluster, or nil.
func podByName(pods []Pod, name string) *Pod {
	for i := range pods {
		if pods[i].Name == name && pods[i].Owned {
			return &pods[i]
		}
	}
	return nil
}

// pvcByName returns the PVC of the member with a name, or nil.
func pvcByName(pvcs []PVC, name string) *PVC {
	for i := range pvcs {
		c := &pvcs[i]
		if c.Name == name && c.Owned && !c.Terminating {
			return c
		}
	}
	return nil
}

// preparedPodByName returns the prepared pod called name, or nil.
func preparedPodByName(prepared []Pod, name string) *Pod {
	for i := range prepared {
		if prepared[i].Name == name {
			return &prepared[i]
		}
	}
	return nil
}

// preparedPVCByName returns the PVC of a prepared pod, or nil.
func preparedPVCByName(preparedPVCs []PVC, name string) *PVC {
	for i := range preparedPVCs {
		if c := &preparedPVCs[i]; c.Name == name && !c.Terminating {
			return c
		}
	}
	return nil
}

// MemberPods returns the pods of members, also that of a recovery member which is hidden from clients: it verifies
// certificates as the others do.
func MemberPods(o *Observed) []*Pod {
	var pods []*Pod
	for i := range o.Pods {
		pods = append(pods, &o.Pods[i])
	}
	if p := o.RecoveryMember.Pod; p != nil && podByName(o.Pods, p.Name) == nil {
		pods = append(pods, p)
	}
	return pods
}

// isGone is true if nothing may count on the pod any more: there is none, or it is about to
// end. Its member may serve on meanwhile, for as long as its node hears nothing of it.
func isGone(p *Pod) bool {
	return evidenceOf(p).IsEnding()
}

// evidenceOf returns what is known about the end of a pod; nil is a pod that does not exist.
func evidenceOf(p *Pod) diagnosis.Evidence {
	if p == nil {
		return diagnosis.PodAbsent
	}
	return diagnosis.EvidenceFrom(p.Finished, p.Terminating)
}

// settledAfter is for how long a container must have run until it is the one that its pod asks for.
// The kubelet replaces a container within seconds after the image of the pod has changed, and reports
// that within some more.
const settledAfter = time.Minute

// hasSettled is true if the container that runs is the one that the pod asks for.
func hasSettled(now time.Time, p *Pod) bool {
	return p.Running && !p.Restarting && !p.Started.IsZero() && now.Sub(p.Started) >= settledAfter
}

// awaitsConfirmation is true while a PVC was taken back from an earlier cluster, and no quorum has listed its
// member.
func awaitsConfirmation(pvcs []PVC) bool {
	return slices.ContainsFunc(pvcs, func(c PVC) bool { return c.Owned && !c.Terminating && c.TakenBackFrom != "" })
}
