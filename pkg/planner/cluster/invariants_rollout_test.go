// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"
)

// checkRestart: a member restarts only while the others are a quorum, or all there are
// where they cannot be one; only one at a time; and its data outlives its pod.
func checkRestart(f *facts, p Plan) string {
	for _, a := range p.Actions {
		name, mode := restarted(a)
		if name == "" {
			continue
		}
		m, i := f.memberNamed(name), f.podIndex(name)
		if m == nil || i < 0 {
			return "restarts a pod without a member"
		}
		if _, again := a.(RecreatePod); again && f.pvcIndex(name) < 0 {
			return "deletes the pod of " + name + ", which holds its data"
		}
		if mode == RestartUnresponsive {
			if m.Health == Healthy || !f.Etcd.Linearizable && f.serving > 0 {
				return "restarts " + name + ", which may serve, unasked"
			}
			continue
		}
		if waiting := mode == RestartIdle; waiting {
			if f.Pods[i].Running {
				return "takes " + name + " for one that does not run"
			}
			continue
		}
		if wrong := f.checkMeanwhile(m, mode == RestartWithOutage); wrong != "" {
			return wrong
		}
	}
	return ""
}

// isDrain is true if the member of the pod votes until it has ended the requests of clients.
func isDrain(d DeletePod) bool { return d.Why == DeleteDrained || d.Why == DeleteReplaced }

// restarted returns the member that an action restarts, if it does.
func restarted(a Action) (name string, mode RestartMode) {
	switch a := a.(type) {
	case UpgradePod:
		return a.Name, a.Mode
	case RecreatePod:
		return a.Name, a.Mode
	default:
		return "", ""
	}
}

// checkMeanwhile looks at those who must serve while m restarts.
func (f *facts) checkMeanwhile(m *Member, outage bool) string {
	serving := f.serving
	if f.serves(m) {
		serving--
	}
	if outage == isMajority(serving, f.voters) {
		return fmt.Sprintf("restarts %s: outage %t", m.Name, outage)
	}
	if outage && (f.voters > 2 || serving < f.voters-1) {
		return fmt.Sprintf("restarts %s: %d of %d voters serve meanwhile", m.Name, serving, f.voters)
	}
	for i := range f.Pods {
		pod, other := &f.Pods[i], f.memberNamed(f.Pods[i].Name)
		if other == nil || other == m || other.Learner {
			continue
		}
		if f.serves(other) && pod.Version != other.Version {
			return fmt.Sprintf("restarts %s while %s is about to restart", m.Name, other.Name)
		}
		if f.serves(m) && !pod.Ready {
			return fmt.Sprintf("restarts %s while %s is not ready", m.Name, other.Name)
		}
	}
	return ""
}

// isAway is true for a member that does not respond and has been away for too long.
func (f *facts) isAway(name string) bool {
	i, m := f.podIndex(name), f.memberNamed(name)
	return i >= 0 && m != nil && m.Health != Healthy && !f.Pods[i].AwaySince.IsZero() && f.Now.Sub(f.Pods[i].AwaySince) >= 5*time.Minute
}

// toReplace is true for a member that must be replaced because its data goes with its
// pod, or is where it does not come back from.
func (f *facts) toReplace(name string) bool {
	if f.isAway(name) {
		return true
	}
	i, c := f.podIndex(name), f.pvcIndex(name)
	if i >= 0 && f.Pods[i].Cordoned && *f.Cluster.Spec.Replicas <= 2 {
		return true // no eviction moves it
	}
	return i >= 0 && f.Pods[i].Template != testTemplate && !f.Pods[i].Terminating && !f.Pods[i].Finished &&
		(c < 0 || f.PVCs[c].Terminating)
}

// checkDrained: no member that serves restarts, is defragmented or is stopped while clients
// are led to it and could be led to another member.
func checkDrained(f *facts, p Plan) string {
	for _, a := range p.Actions {
		name, mode := restarted(a)
		if d, ok := a.(DeletePod); ok && isDrain(d) {
			name = d.Name
		}
		i, m := f.podIndex(name), f.memberNamed(name)
		if i < 0 || m == nil || mode == RestartIdle || !f.serves(m) || !f.Pods[i].InEndpoints {
			continue
		}
		for j := range f.Pods {
			if other := f.memberNamed(f.Pods[j].Name); other != nil && other != m && !other.Learner && f.serves(other) && f.Pods[j].InEndpoints {
				return "stops " + name + " while clients are led to it"
			}
		}
	}
	return ""
}
