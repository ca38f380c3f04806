// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfRecovery are mistakes with what fills the first member of a recovery.
func bugsOfRecovery() []bug {
	return []bug{
		{name: "fetches again what is on the disk", rules: "L1", wrap: func(m *manager.Manager, c cluster.Config) cluster.Config {
			c = deciding(leaveFilling)(m, c)
			c.Objects = forgetful{c.Objects}
			return c
		}, story: rebootRecovered},
		{name: "leaves what has filled a member in its pod", rules: "L1", wrap: deciding(leaveFilling), story: rebootRecovered},
		{name: "replaces data that is back and that nothing stores", rules: "S6", wrap: deciding(forgetUncopied), story: restoreWhileAway},
	}
}

// restoreWhileAway restores a backup while no member responds, which makes no pre-restore backup. All members
// come back before the recovery member serves.
func restoreWhileAway(s *schedules.Schedule) {
	s.Deadly, s.Automatic, s.Size = true, false, 3
	s.Events = []schedules.Event{{At: time.Minute, Kind: schedules.EventBackup}}
	for i := range 8 {
		s.Events = append(s.Events, schedules.Event{At: 90 * time.Second, Kind: schedules.EventNodeDown, A: i, For: 90 * time.Second})
	}
	s.Events = append(s.Events,
		schedules.Event{At: 150 * time.Second, Kind: schedules.EventRestore},
		schedules.Event{At: 3*time.Minute - time.Second, Kind: schedules.EventSlowStart, For: time.Minute},
		schedules.Event{At: 4 * time.Minute, Kind: schedules.EventResume}) // all faults end with the last event
}

// forgetUncopied does not know which restores have no pre-restore backup.
func forgetUncopied(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	if r := o.Record.Recovery; r != nil {
		o.Record.Recovery = r.DeepCopy()
		o.Record.Recovery.OnlyIfUnresponsive = false
	}
	if o.Cluster.Status.Recovery != nil {
		o.Cluster = o.Cluster.DeepCopy()
		o.Cluster.Status.Recovery.OnlyIfUnresponsive = false
	}
	return decide(o)
}

// rebootRecovered reboots all machines after a cluster was recovered from a survivor, which no longer exists
// then.
func rebootRecovered(s *schedules.Schedule) {
	s.Deadly, s.Recovers, s.Automatic = true, true, false
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventDisaster, A: s.Events[0].A},
		{At: 2 * time.Minute, Kind: schedules.EventRecover},
	}
	for i := range 8 {
		s.Events = append(s.Events, schedules.Event{At: 4 * time.Minute, Kind: schedules.EventNodeDown, A: i, For: 5 * time.Second})
	}
	s.Events = append(s.Events, schedules.Event{At: 4*time.Minute + 6*time.Second, Kind: schedules.EventResume}) // all faults end with the last event
}

// leaveFilling does not notice pods that still have what filled them.
func leaveFilling(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Pods = append([]planner.Pod(nil), o.Pods...)
	for i := range o.Pods {
		o.Pods[i].Fills = false
	}
	if p := o.RecoveryMember.Pod; p != nil {
		ordinary := *p
		ordinary.Fills = false
		o.RecoveryMember.Pod = &ordinary
	}
	return decide(o)
}

// forgetful creates pods whose init containers do not look at the data directory first.
type forgetful struct{ cluster.Objects }

// CreatePod implements cluster.Objects.
func (f forgetful) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	for i := range pod.Spec.InitContainers {
		for j, arg := range pod.Spec.InitContainers[i].Command {
			pod.Spec.InitContainers[i].Command[j] = strings.Replace(arg, `"filledDir":"/var/etcd/data",`, "", 1)
		}
	}
	return f.Objects.CreatePod(ctx, pod)
}
