// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// EtcdPool is the Etcd that real members answer, over a pool of connections.
type EtcdPool struct{ Pool *etcd.Pool }

// Members implements Etcd.
func (p EtcdPool) Members(ctx context.Context, target etcd.Target) (etcd.Membership, error) {
	return p.Pool.Client(target).Members(ctx)
}

// OwnMembers implements Etcd.
func (p EtcdPool) OwnMembers(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (etcd.Membership, error) {
	return p.Pool.Client(target).OwnMembers(ctx, endpoint)
}

// Statuses implements Etcd.
func (p EtcdPool) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	return p.Pool.Client(target).Statuses(ctx)
}

// Shown implements Etcd.
func (p EtcdPool) Shown(ctx context.Context, target etcd.Target) map[string]etcd.Shown {
	return p.Pool.Client(target).Shown(ctx, resources.PeerPort)
}

// AddLearner implements Etcd.
func (p EtcdPool) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	_, err := p.Pool.Client(target).AddLearner(ctx, peerURL)
	return err
}

// AddVoter implements Etcd.
func (p EtcdPool) AddVoter(ctx context.Context, target etcd.Target, peerURL string) error {
	_, err := p.Pool.Client(target).AddVoter(ctx, peerURL)
	return err
}

// Promote implements Etcd. That the member votes already is success: the reply to an
// earlier attempt was lost.
func (p EtcdPool) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	err := p.Pool.Client(target).Promote(ctx, id)
	if errors.Is(err, etcd.ErrNotLearner) {
		return nil
	}
	return err
}

// Remove implements Etcd.
func (p EtcdPool) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return p.Pool.Client(target).Remove(ctx, id)
}

// ProveWrite implements Etcd.
func (p EtcdPool) ProveWrite(ctx context.Context, target etcd.Target) error {
	return p.Pool.Client(target).ProveWrite(ctx)
}

// Pad implements Etcd.
func (p EtcdPool) Pad(ctx context.Context, target etcd.Target, n int) error {
	return p.Pool.Client(target).Pad(ctx, n)
}

// Defragment implements Etcd.
func (p EtcdPool) Defragment(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error {
	return p.Pool.Client(target).Defragment(ctx, endpoint)
}

// DisarmNoSpace implements Etcd.
func (p EtcdPool) DisarmNoSpace(ctx context.Context, target etcd.Target, id uint64) error {
	return p.Pool.Client(target).Disarm(ctx, etcd.Alarm{MemberID: id, Type: etcd.AlarmNoSpace})
}

// MoveLeader implements Etcd.
func (p EtcdPool) MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error {
	return p.Pool.Client(leader).MoveLeader(ctx, to)
}
