// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// AddLearner implements cluster.Etcd.
func (p etcdPort) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.change(ctx, "add learner "+peerURL, target, func(at *process) error {
		return p.checked(at, func() error { return p.c.w.etcd.add(at, peerURL, true) })
	})
}

// AddVoter implements cluster.Etcd.
func (p etcdPort) AddVoter(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.change(ctx, "add voter "+peerURL, target, func(at *process) error {
		return p.checked(at, func() error { return p.c.w.etcd.add(at, peerURL, false) })
	})
}

// Promote implements cluster.Etcd. That the member votes already is success.
func (p etcdPort) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	err := p.change(ctx, "promote", target, func(at *process) error {
		return p.checked(at, func() error { return p.c.w.etcd.promote(at, id) })
	})
	if errors.Is(err, etcd.ErrNotLearner) {
		return nil
	}
	return err
}

// Remove implements cluster.Etcd.
func (p etcdPort) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return p.change(ctx, "remove", target, func(at *process) error {
		p.c.w.checks.removing(p.c, at.dir.lineage, id)
		return p.checked(at, func() error { return p.c.w.etcd.remove(at, id) })
	})
}

// MoveLeader implements cluster.Etcd.
func (p etcdPort) MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error {
	return p.change(ctx, "move leader", leader, func(at *process) error {
		return p.c.w.etcd.moveLeader(at, to)
	})
}

// checked makes a change of the membership and looks at what came of it.
func (p etcdPort) checked(at *process, change func() error) error {
	w := p.c.w
	w.checks.changing(p.c, at.dir.lineage)
	err := change()
	w.checks.changed(p.c, at.dir.lineage, err)
	return err
}
