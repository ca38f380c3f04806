// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
)

// Pad implements cluster.Etcd.
func (p etcdPort) Pad(ctx context.Context, target etcd.Target, n int) error {
	return p.change(ctx, "pad the log", target, func(at *simetcd.Process) error {
		leader := p.c.W.Etcd.QuorumLeader(at)
		if leader == nil || !p.c.W.Etcd.Append(leader, simetcd.Entry{Kind: simetcd.EntryEmpty, Extra: uint64(n - 1)}) {
			return simetcd.Rejected("pad the log", at, etcd.ErrNoQuorum)
		}
		return nil
	})
}

// Defragment implements cluster.Etcd. It is the end of a task and no call of a
// reconcile, so no fault of those strikes it.
func (p etcdPort) Defragment(_ context.Context, target etcd.Target, endpoint etcd.Endpoint) error {
	at, err := p.of(target, endpoint, "defragment")
	if at == nil || err != nil {
		return &etcd.Error{Op: "defragment", Member: endpoint.Name, Kind: etcd.ErrUnavailable}
	}
	p.c.W.Trace("%s defragmented %s", p.c.Name, at.Run.Name())
	p.c.W.Stats.Defragmented++
	p.c.W.Etcd.Defragment(at.Dir)
	return nil
}

// noteFull remembers when a member last served with a full database. A member that does not serve says nothing
// that ends this; a member that responds and has room does, also after its container was restarted.
func (w *World) noteFull(at *simetcd.Process, err error) {
	switch {
	case err != nil:
	case !at.IsFull():
		maps.DeleteFunc(w.servedFull, func(earlier *simetcd.Process, _ time.Duration) bool { return earlier.Dir == at.Dir })
	case at.Leader != 0 && w.Etcd.Read(at) == nil:
		w.servedFull[at] = w.Elapsed
	}
}

// fullMember returns a member of an etcd that served with a full database within the last minute, and whose pod still has
// that quota; empty if there is none. A member that is away for longer keeps no alarm raised. Where clocks differ nobody
// knows how long it was: the wait began at the time of one controller, and another one, with another clock, may end it. That
// harms nothing, as etcd raises the alarm again.
func (w *World) fullMember(of *simetcd.Lineage) (name string) {
	if w.Plan.Skew > 0 {
		return ""
	}
	for at, when := range w.servedFull {
		_, exists := at.Run.Pod()
		isMember := at.Dir.Lineage == of && at.Dir.Lineage.Members.Find(at.Dir.Id) != nil // one that was removed a moment ago may still respond
		if exists && isMember && w.Elapsed-when < time.Minute {
			name = max(name, at.Run.Name()) // the same one in each replay
		}
	}
	return name
}

// DisarmNoSpace implements cluster.Etcd.
func (p etcdPort) DisarmNoSpace(ctx context.Context, target etcd.Target, id uint64) (disarmed bool, err error) {
	err = p.change(ctx, "disarm NOSPACE", target, func(at *simetcd.Process) error {
		if full := p.c.W.fullMember(at.Dir.Lineage); full != "" {
			p.c.W.Violated("L2", "the alarm NOSPACE is disarmed, and the database of %s was full when it last served", full)
		}
		disarmed, err = p.c.W.Etcd.Disarm(at, id)
		return err
	})
	return disarmed, err
}

// AddLearner implements cluster.Etcd.
func (p etcdPort) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.change(ctx, "add learner "+peerURL, target, func(at *simetcd.Process) error {
		return p.checked(at, func() error { return p.c.W.Etcd.Add(at, peerURL, true) })
	})
}

// AddVoter implements cluster.Etcd.
func (p etcdPort) AddVoter(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.change(ctx, "add voter "+peerURL, target, func(at *simetcd.Process) error {
		return p.checked(at, func() error { return p.c.W.Etcd.Add(at, peerURL, false) })
	})
}

// Promote implements cluster.Etcd. That the member votes already is success.
func (p etcdPort) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	err := p.change(ctx, "promote", target, func(at *simetcd.Process) error {
		return p.checked(at, func() error { return p.c.W.Etcd.Promote(at, id) })
	})
	if errors.Is(err, etcd.ErrNotLearner) {
		return nil
	}
	return err
}

// Remove implements cluster.Etcd.
func (p etcdPort) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return p.change(ctx, "remove", target, func(at *simetcd.Process) error {
		p.c.W.Observer.Removing(p.c, at.Dir.Lineage, id)
		return p.checked(at, func() error { return p.c.W.Etcd.Remove(at, id) })
	})
}

// MoveLeader implements cluster.Etcd.
func (p etcdPort) MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error {
	return p.change(ctx, "move leader", leader, func(at *simetcd.Process) error {
		return p.c.W.Etcd.MoveLeader(at, to)
	})
}

// checked makes a change of the membership and checks the result.
func (p etcdPort) checked(at *simetcd.Process, change func() error) error {
	w := p.c.W
	w.Observer.Changing(p.c, at.Dir.Lineage)
	err := change()
	w.Observer.Changed(p.c, at.Dir.Lineage, err)
	return err
}

// ClusterVersion implements cluster.Etcd. Simulated etcd decides it at once.
func (p etcdPort) ClusterVersion(_ context.Context, target etcd.Target, endpoint etcd.Endpoint) (string, error) {
	at := p.at(target, endpoint)
	if at == nil {
		return "", etcd.ErrUnavailable
	}
	low := at.Dir.Lineage.LowestVersion()
	if low == nil {
		return "", etcd.ErrVersionUndecided
	}
	return fmt.Sprintf("%d.%d.0", low.Major(), low.Minor()), nil
}

// ProveWrite implements cluster.Etcd.
func (p etcdPort) ProveWrite(ctx context.Context, target etcd.Target) error {
	return p.change(ctx, "prove a write", target, func(at *simetcd.Process) error {
		leader := p.c.W.Etcd.QuorumLeader(at)
		if leader == nil || !p.c.W.Etcd.Append(leader, simetcd.Entry{Kind: simetcd.EntryEmpty}) {
			return simetcd.Rejected("prove a write", at, etcd.ErrNoQuorum)
		}
		return nil
	})
}

// ProveFirstWrite implements cluster.Etcd.
func (p etcdPort) ProveFirstWrite(ctx context.Context, target etcd.Target) error {
	return p.ProveWrite(ctx, target)
}
