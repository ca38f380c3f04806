// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfPartitions are mistakes about members on nodes that are cut off.
func bugsOfPartitions() []bug {
	return []bug{
		{name: "takes a deletion that was requested for the end of a member", rules: "S1 S4", wrap: hurrying(takeDeletedForEnded), story: severMajority},
		{name: "lets Kubernetes delete pods behind a partition", rules: "S1 L1", wrap: evictable, story: severMajorityForLong},
		{name: "waits for a member whose local volume is lost", rules: "L1", wrap: deciding(neverAway), story: loseLocalVolume},
		{name: "believes that the status names every voter", rules: "S1", wrap: judgingByStatus, story: recoverBesideANewMajority},
		{name: "reads the volume of a member that may run", rules: "S5", wrap: hurrying(takeDeletedForEnded), story: loseAllButAVolume},
		{name: "publishes a new lineage beside members that may run", rules: "S1 S4", wrap: hurrying(nil), story: restoreBesideACut},
	}
}

// judgingByStatus is a controller that judges a lost quorum by the members of the last status alone.
func judgingByStatus(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Objects = sureOfLosses{c.Objects}
	return deciding(func(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		o.Etcd.Members, o.Pods = slices.Clone(o.Etcd.Members), slices.Clone(o.Pods)
		named := map[string]bool{}
		for i := range o.Etcd.Members {
			named[o.Etcd.Members[i].Name], o.Etcd.Members[i].View = true, nil
		}
		o.Pods = slices.DeleteFunc(o.Pods, func(p planner.Pod) bool { return !named[p.Name] })
		return decide(o)
	})(m, c)
}

// sureOfLosses reports a quorum that is not known to serve as lost.
type sureOfLosses struct{ cluster.Objects }

// NodeReports implements cluster.Objects. The wait for reports of nodes would hide the mistake.
func (sureOfLosses) NodeReports(context.Context, []string) (map[string]string, error) {
	return nil, nil
}

// UpdateClusterStatus implements cluster.Objects.
func (s sureOfLosses) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	if kubernetes.ConditionIs(c, v1beta2.ClusterConditionQuorumLost, corev1.ConditionUnknown) {
		c = said(c, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	}
	return s.Objects.UpdateClusterStatus(ctx, c)
}

// hurrying is a controller that takes a pod for ended as soon as its deletion was requested.
func hurrying(change func(*manager.Manager, cluster.Config, planner.Observed, decider) planner.Plan) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		c.Objects = hasty{c.Objects}
		if change == nil {
			return c
		}
		return deciding(change)(m, c)
	}
}

type hasty struct{ cluster.Objects }

// NodeReports implements cluster.Objects. The wait for reports of nodes would hide the mistake.
func (hasty) NodeReports(context.Context, []string) (map[string]string, error) { return nil, nil }

// GetPod implements cluster.Objects.
func (h hasty) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := h.Objects.GetPod(ctx, namespace, name)
	if err == nil && pod.DeletionTimestamp != nil {
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodFailed
	}
	return pod, err
}

// evictable is a controller whose pods leave nodes that do not respond when the author of the spec
// says so.
func evictable(_ *manager.Manager, c cluster.Config) cluster.Config {
	c.Objects = intolerant{c.Objects}
	return c
}

type intolerant struct{ cluster.Objects }

// CreatePod implements cluster.Objects.
func (i intolerant) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)}}
	return i.Objects.CreatePod(ctx, pod)
}

func neverAway(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Pods = slices.Clone(o.Pods)
	for i := range o.Pods {
		o.Pods[i].AwaySince = time.Time{}
	}
	return decide(o)
}

func takeDeletedForEnded(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Pods = slices.Clone(o.Pods)
	for i := range o.Pods {
		o.Pods[i].Finished = o.Pods[i].Finished || o.Pods[i].Terminating
	}
	return decide(provenForLong(o))
}

// provenForLong sets a status in which the permanent loss of the quorum began an hour ago.
// The real one is made of what was really observed, and so proves nothing.
func provenForLong(o planner.Observed) planner.Observed {
	since := metav1.NewTime(o.Now.Add(-time.Hour))
	o.Cluster = o.Cluster.DeepCopy()
	o.Cluster.Status.PermanentQuorumLossSince = &since
	return o
}

// severMajority cuts most members off for longer than Kubernetes leaves their pods alone, in
// a cluster that may go on by itself.
func severMajority(s *schedules.Schedule) {
	s.Evicts = true
	s.Size, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 3, false, true, true, false, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventSever, A: int(s.Seed), B: 16, For: schedules.EvictAfter + 3*time.Minute},
		{At: time.Minute + schedules.EvictAfter + 3*time.Minute, Kind: schedules.EventResume}, // all faults end with the last event
	}
}

// severMajorityForLong is severMajority in a cluster that must lose nothing by it.
func severMajorityForLong(s *schedules.Schedule) {
	severMajority(s)
	s.Deadly, s.Evicts, s.Automatic, s.Stay = false, false, false, 5*time.Second
}

// loseLocalVolume takes a node away for ever, with the volume of a member.
func loseLocalVolume(s *schedules.Schedule) {
	s.Size, s.Volumes, s.LocalVolumes, s.Deadly, s.Evicts, s.Version = 3, true, true, false, false, schedules.VersionLines[0][0]
	s.Events = nil
	for i := range 8 { // whichever nodes the members are on; no more than one of them goes
		s.Events = append(s.Events, schedules.Event{At: time.Minute + time.Duration(i)*time.Second, Kind: schedules.EventNodeLost, A: i})
	}
}

// recoverBesideANewMajority brings the API back to before two members were replaced, while a
// majority with the new members is cut off. A person asks for a recovery before Kubernetes calls
// the nodes not ready.
func recoverBesideANewMajority(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 5, false, true, false, false, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventOldAPI, A: int(s.Seed), For: 40 * time.Second},
		{At: 80 * time.Second, Kind: schedules.EventDisaster, A: int(s.Seed), B: 2},
		{At: 95 * time.Second, Kind: schedules.EventSever, A: int(s.Seed / 2), B: 16, For: 4 * time.Minute},
		{At: 115 * time.Second, Kind: schedules.EventRecover},
		{At: 6 * time.Minute, Kind: schedules.EventResume},
	}
}

// loseAllButAVolume destroys all members but one, whose etcd restarts and does not respond any more.
func loseAllButAVolume(s *schedules.Schedule) {
	s.Size, s.Volumes, s.LocalVolumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 3, true, true, true, true, false, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventDisaster, A: int(s.Seed)},
		{At: 62 * time.Second, Kind: schedules.EventKillContainer, A: int(s.Seed)},
		{At: 3 * time.Minute, Kind: schedules.EventResume},
	}
}

// restoreBesideACut asks for a restore in place while most members are cut off.
func restoreBesideACut(s *schedules.Schedule) {
	s.Evicts = true
	s.Size, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 3, false, true, false, false, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: 50 * time.Second, Kind: schedules.EventBackup},
		{At: time.Minute, Kind: schedules.EventSever, A: int(s.Seed), B: 16, For: 4 * time.Minute},
		{At: 90 * time.Second, Kind: schedules.EventRestore},
		{At: 5 * time.Minute, Kind: schedules.EventResume},
	}
}
